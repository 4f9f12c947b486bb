# problem: level2/3
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: the library's matrix product with bias, then an own kernel in place on that temporary.

Surface: most of the time goes to the vendor's kernel, which is allowed unless a board is stricter.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void gelu_scale(float* y, int64_t n, float scale) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const float v = y[i];
        y[i] = scale * (v * normcdff(v));
    }
}

torch::Tensor linear_gelu_scale(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double scale) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 2, "linear_gelu_scale: a float32 matrix");
    auto y = at::addmm(bias, x, weight.t());
    const int64_t n = y.numel();
    if (n > 0) {
        const int blocks = static_cast<int>(std::min<int64_t>((n + 255) / 256, 4096));
        gelu_scale<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            y.data_ptr<float>(), n, static_cast<float>(scale));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="linear_epilogue",
    cpp_sources=(
        "torch::Tensor linear_gelu_scale(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double scale);"
    ),
    cuda_sources=cuda_source,
    functions=["linear_gelu_scale"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        return extension.linear_gelu_scale(x, self.linear.weight, self.linear.bias, self.scale)
