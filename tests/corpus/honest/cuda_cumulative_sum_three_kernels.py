# problem: level1/6
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: scans chunks, scans their totals in a temporary workspace, adds them; three kernels in a row.

Surface: sums in another order than one after another; memory that is freed while kernels still use it.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;
constexpr int EACH = 4;
constexpr int CHUNK = THREADS * EACH;

__global__ void __launch_bounds__(THREADS) scan_chunks(const float* __restrict__ x, float* __restrict__ y,
                                                       float* __restrict__ totals, int columns) {
    __shared__ float warps[THREADS / 32];
    const int64_t base = int64_t(blockIdx.y) * columns;
    const int first = blockIdx.x * CHUNK + threadIdx.x * EACH;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float values[EACH];
    float total = 0.0f;
    for (int i = 0; i < EACH; ++i) {
        total += first + i < columns ? x[base + first + i] : 0.0f;
        values[i] = total;
    }
    float before = total;
    for (int offset = 1; offset < 32; offset <<= 1) {
        const float other = __shfl_up_sync(0xffffffffu, before, offset);
        if (lane >= offset) {
            before += other;
        }
    }
    if (lane == 31) {
        warps[warp] = before;
    }
    before = __shfl_up_sync(0xffffffffu, before, 1);
    if (lane == 0) {
        before = 0.0f;
    }
    __syncthreads();
    for (int i = 0; i < warp; ++i) {
        before += warps[i];
    }
    for (int i = 0; i < EACH; ++i) {
        if (first + i < columns) {
            y[base + first + i] = before + values[i];
        }
    }
    if (threadIdx.x == THREADS - 1) {
        totals[int64_t(blockIdx.y) * gridDim.x + blockIdx.x] = before + total;
    }
}

__global__ void scan_totals(float* totals, int rows, int chunks) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float before = 0.0f;
        for (int i = 0; i < chunks; ++i) {
            const float total = totals[int64_t(row) * chunks + i];
            totals[int64_t(row) * chunks + i] = before;
            before += total;
        }
    }
}

__global__ void add_totals(float* __restrict__ y, const float* __restrict__ totals, int columns, int chunks) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) {
        y[int64_t(blockIdx.y) * columns + column] += totals[int64_t(blockIdx.y) * chunks + column / CHUNK];
    }
}

torch::Tensor cumulative_sum(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 2, "cumulative_sum: a float32 matrix");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() == 0) {
        return y;
    }
    const int rows = static_cast<int>(x.size(0)), columns = static_cast<int>(x.size(1));
    TORCH_CHECK(rows <= 65535, "cumulative_sum: at most 65535 rows");
    const int chunks = (columns + CHUNK - 1) / CHUNK;
    auto totals = at::empty({rows, chunks}, x.options());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    scan_chunks<<<dim3(chunks, rows), THREADS, 0, stream>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), totals.data_ptr<float>(), columns);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    scan_totals<<<(rows + 127) / 128, 128, 0, stream>>>(totals.data_ptr<float>(), rows, chunks);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    add_totals<<<dim3((columns + 255) / 256, rows), 256, 0, stream>>>(
        y.data_ptr<float>(), totals.data_ptr<float>(), columns, chunks);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline(
    name="cumulative_sum",
    cpp_sources="torch::Tensor cumulative_sum(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["cumulative_sum"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return extension.cumulative_sum(x.movedim(self.dim, -1)).movedim(-1, self.dim)
