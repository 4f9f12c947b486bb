# problem: level1/5
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: value and index in one 64-bit key, the least of which is found by atomics in any order.

Surface: ties, -0 beside 0, and the first-index rule, exactly.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int SLAB = 64;

// Unsigned integers in the order of the floats; NaN before all others, as in torch.
__device__ unsigned ordered(float v) {
    if (isnan(v)) {
        return 0u;
    }
    const unsigned bits = __float_as_uint(v == 0.0f ? 0.0f : v);  // -0 becomes 0
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__global__ void least_of_slabs(const float* __restrict__ x, unsigned long long* __restrict__ keys, int rows,
                               int64_t columns) {
    const int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (column >= columns) {
        return;
    }
    const float* matrix = x + int64_t(blockIdx.z) * rows * columns;
    const int first = blockIdx.y * SLAB, last = min(rows, first + SLAB);
    unsigned long long least = ~0ull;
    for (int row = first; row < last; ++row) {
        const unsigned long long key = (static_cast<unsigned long long>(ordered(matrix[row * columns + column])) << 32) |
                                       static_cast<unsigned>(row);
        least = key < least ? key : least;
    }
    atomicMin(keys + int64_t(blockIdx.z) * columns + column, least);
}

__global__ void take_index(const unsigned long long* __restrict__ keys, int64_t* __restrict__ index, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        index[i] = static_cast<int64_t>(keys[i] & 0xffffffffull);
    }
}

torch::Tensor argmin_rows(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 3, "argmin_rows: float32, three dimensions");
    TORCH_CHECK(x.size(1) > 0, "argmin_rows: nothing to choose from");
    x = x.contiguous();
    const int64_t batch = x.size(0), rows = x.size(1), columns = x.size(2);
    auto keys = at::full({batch, columns}, -1, x.options().dtype(at::kLong));  // all bits set
    auto index = at::empty({batch, columns}, keys.options());
    const int64_t n = index.numel();
    if (n > 0) {
        const auto stream = c10::cuda::getCurrentCUDAStream();
        auto* raw = reinterpret_cast<unsigned long long*>(keys.data_ptr<int64_t>());
        const dim3 grid(static_cast<unsigned>((columns + 127) / 128),
                        static_cast<unsigned>((rows + SLAB - 1) / SLAB), static_cast<unsigned>(batch));
        least_of_slabs<<<grid, 128, 0, stream>>>(x.data_ptr<float>(), raw, static_cast<int>(rows), columns);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        take_index<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(raw, index.data_ptr<int64_t>(), n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return index;
}
"""

extension = load_inline(
    name="argmin_keys",
    cpp_sources="torch::Tensor argmin_rows(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["argmin_rows"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        if dim != 1:
            raise ValueError(f"made for dimension 1, not {dim}")

    def forward(self, x):
        return extension.argmin_rows(x)
