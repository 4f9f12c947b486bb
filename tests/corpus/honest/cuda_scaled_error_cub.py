# problem: scaled_error
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: CUB's device-wide reduction, compiled into the extension, over an own kernel's differences.

Surface: launches whose names are a library's, though the candidate built them; an output without dimensions.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cub/device/device_reduce.cuh>

#include <algorithm>

__global__ void differences(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out,
                            int64_t n, float share) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        out[i] = fabsf(x[i] - y[i]) * share;
    }
}

torch::Tensor mean_error(torch::Tensor x, torch::Tensor y) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.numel() > 0, "mean_error: float32, not empty");
    TORCH_CHECK(y.is_cuda() && y.scalar_type() == at::kFloat && y.sizes() == x.sizes(), "mean_error: alike");
    x = x.contiguous();
    y = y.contiguous();
    const int64_t n = x.numel();
    TORCH_CHECK(n < (int64_t(1) << 31), "mean_error: too large");
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    auto terms = at::empty({n}, x.options());
    auto total = at::empty({}, x.options());
    const int blocks = static_cast<int>(std::min<int64_t>((n + 255) / 256, 2048));
    differences<<<blocks, 256, 0, stream>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), terms.data_ptr<float>(), n, 1.0f / static_cast<float>(n));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    const float* in = terms.data_ptr<float>();
    float* out = total.data_ptr<float>();
    size_t bytes = 0;
    C10_CUDA_CHECK(cub::DeviceReduce::Sum(nullptr, bytes, in, out, static_cast<int>(n), stream));
    auto workspace = at::empty({static_cast<int64_t>(std::max<size_t>(bytes, 1))}, x.options().dtype(at::kByte));
    C10_CUDA_CHECK(
        cub::DeviceReduce::Sum(workspace.data_ptr<uint8_t>(), bytes, in, out, static_cast<int>(n), stream));
    return total;
}
"""

extension = load_inline(
    name="mean_error",
    cpp_sources="torch::Tensor mean_error(torch::Tensor x, torch::Tensor y);",
    cuda_sources=cuda_source,
    functions=["mean_error"],
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return extension.mean_error(x, y)
