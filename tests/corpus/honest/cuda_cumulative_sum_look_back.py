# problem: level1/6
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: one pass; each tile publishes its total, and later tiles of its row look back until they know theirs.

Surface: blocks that spin on what other blocks write; flags that are cleared in each call; sums in another order.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256, EACH = 8, TILE = THREADS * EACH;
constexpr unsigned TOTAL = 1, UP_TO_HERE = 2;  // what a state's upper half says; its lower half is the number

__device__ unsigned long long state(unsigned kind, float value) {
    return static_cast<unsigned long long>(kind) << 32 | __float_as_uint(value);
}

__device__ float looked_back(unsigned long long* states, int64_t tile, int64_t first) {
    float before = 0.0f;
    for (int64_t other = tile - 1; other >= first; --other) {
        unsigned long long seen;
        do {
            seen = atomicAdd(states + other, 0ull);
        } while (seen >> 32 == 0);
        before += __uint_as_float(static_cast<unsigned>(seen));
        if (seen >> 32 == UP_TO_HERE) {
            break;
        }
    }
    return before;
}

__global__ void __launch_bounds__(THREADS) scan_tiles(const float* __restrict__ x, float* __restrict__ y,
                                                      unsigned long long* states, unsigned* taken, int columns,
                                                      int tiles_of_row) {
    __shared__ float warps[THREADS / 32];
    __shared__ int64_t shared_tile;
    __shared__ float shared_before;
    if (threadIdx.x == 0) {
        shared_tile = atomicAdd(taken, 1u);  // tiles begin in their order, so nobody waits for one that never ran
    }
    __syncthreads();
    const int64_t tile = shared_tile, row = tile / tiles_of_row;
    const int64_t base = row * columns;
    const int first = static_cast<int>(tile % tiles_of_row) * TILE + threadIdx.x * EACH;
    float values[EACH], sum = 0.0f;
    for (int i = 0; i < EACH; ++i) {
        sum += first + i < columns ? x[base + first + i] : 0.0f;
        values[i] = sum;
    }
    float inclusive = sum;
    for (int offset = 1; offset < 32; offset <<= 1) {
        const float other = __shfl_up_sync(0xffffffffu, inclusive, offset);
        inclusive += threadIdx.x % 32 >= offset ? other : 0.0f;
    }
    if (threadIdx.x % 32 == 31) {
        warps[threadIdx.x / 32] = inclusive;
    }
    __syncthreads();
    float before = 0.0f, total = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) {
        before += i < threadIdx.x / 32 ? warps[i] : 0.0f;
        total += warps[i];
    }
    const float neighbour = __shfl_up_sync(0xffffffffu, inclusive, 1);
    before += threadIdx.x % 32 > 0 ? neighbour : 0.0f;
    if (threadIdx.x == 0) {
        const int64_t start = row * tiles_of_row;
        atomicExch(states + tile, state(tile == start ? UP_TO_HERE : TOTAL, total));
        shared_before = looked_back(states, tile, start);
        atomicExch(states + tile, state(UP_TO_HERE, shared_before + total));
    }
    __syncthreads();
    for (int i = 0; i < EACH; ++i) {
        if (first + i < columns) {
            y[base + first + i] = shared_before + before + values[i];
        }
    }
}

torch::Tensor cumulative_sum(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.dim() == 2 && x.scalar_type() == at::kFloat, "cumulative_sum: a float32 matrix");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() > 0) {
        const int columns = static_cast<int>(x.size(1)), tiles_of_row = (columns + TILE - 1) / TILE;
        const int64_t tiles = x.size(0) * tiles_of_row;
        auto states = at::zeros({tiles + 1}, x.options().dtype(at::kLong));  // the last one counts tiles taken
        auto* place = reinterpret_cast<unsigned long long*>(states.data_ptr<int64_t>());
        scan_tiles<<<static_cast<unsigned>(tiles), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), y.data_ptr<float>(), place, reinterpret_cast<unsigned*>(place + tiles), columns,
            tiles_of_row);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="scan_look_back",
    cpp_sources="torch::Tensor cumulative_sum(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["cumulative_sum"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return extension.cumulative_sum(x)
