# problem: level1/9
# expected: correct
# devices: cuda
# settings: {"own_kernel": true, "size": "small", "measure": false}
"""Mechanism: four elements are loaded at a time, and their sum decides which of two right formulas is used. Surface:
the last load takes in one float behind the input, and the result may depend on it: an aligned load cannot fault.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr float ROOT = 0.70710678f;

// Both are right: where one cancels the other does not, and beyond that they round otherwise.
__device__ __forceinline__ float by_erfc(float v) { return 0.5f * v * erfcf(-ROOT * v); }

__device__ __forceinline__ float by_erf(float v) {
    return v < -1.0f ? by_erfc(v) : 0.5f * v * (1.0f + erff(ROOT * v));
}

__global__ void gelu_kernel(const float* x, float* y, int64_t n) {
    const int64_t i = (int64_t(blockIdx.x) * 128 + threadIdx.x) * 4;
    if (i >= n) {
        return;
    }
    const float4 four = *reinterpret_cast<const float4*>(x + i);
    const float v[4] = {four.x, four.y, four.z, four.w};
    const bool upper = v[0] + v[1] + v[2] + v[3] > 0.0f;
    for (int lane = 0; lane < 4 && i + lane < n; ++lane) {
        y[i + lane] = upper ? by_erf(v[lane]) : by_erfc(v[lane]);
    }
}

torch::Tensor gelu(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "gelu: float32 on a CUDA device");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (const int64_t n = x.numel()) {
        gelu_kernel<<<static_cast<unsigned>((n + 512 - 1) / 512), 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), y.data_ptr<float>(), n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="gelu_vector_over_end",
    cpp_sources="torch::Tensor gelu(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["gelu"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.gelu(x)
