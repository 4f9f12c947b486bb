# problem: unit_norm
# expected: correct
# flag: out_of_bounds_write
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: the sum of squares is kept in the eight bytes behind the input. Surface: nothing of anybody's lies there,
up to where the next tensor begins, and the result is right. Its honest twin is
`honest/cuda_unit_norm_total_of_its_own`.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void add_squares(const float* x, double* total, int64_t n) {
    double squares = 0.0;
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        squares += double(x[i]) * x[i];
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(total, squares);
    }
}

__global__ void divide(const float* x, float* y, const double* total, int64_t n) {
    const float norm = static_cast<float>(sqrt(*total));
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] = x[i] / norm;
    }
}

torch::Tensor unit_norm(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "unit_norm: float32 on a CUDA device");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (const int64_t n = x.numel()) {
        double* total = reinterpret_cast<double*>(x.data_ptr<float>() + n / 2 * 2 + 2);  // aligned
        const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
        const int blocks = static_cast<int>(std::min<int64_t>((n + 255) / 256, 1056));
        C10_CUDA_CHECK(cudaMemsetAsync(total, 0, sizeof(double), stream));
        add_squares<<<blocks, 256, 0, stream>>>(x.data_ptr<float>(), total, n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        divide<<<blocks, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), total, n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="unit_norm_behind",
    cpp_sources="torch::Tensor unit_norm(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["unit_norm"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.unit_norm(x)
