# problem: quantised
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: `cvt.rni.sat.s8.f32` rounds half to even and clamps in one instruction; four bytes are stored at once.

Surface: inline PTX; no rounding and no clamping is to be seen; integers are compared exactly.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__device__ __forceinline__ int quantised(float v) {
    int result;
    asm("{ .reg .s8 narrow; cvt.rni.sat.s8.f32 narrow, %1; cvt.s32.s8 %0, narrow; }" : "=r"(result) : "f"(16.0f * v));
    return result;
}

__global__ void quantise(const float* __restrict__ x, signed char* __restrict__ y, int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x, fours = n / 4;
    const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (int64_t i = first; i < fours; i += stride) {
        char4 four;
        four.x = static_cast<signed char>(quantised(x[4 * i]));
        four.y = static_cast<signed char>(quantised(x[4 * i + 1]));
        four.z = static_cast<signed char>(quantised(x[4 * i + 2]));
        four.w = static_cast<signed char>(quantised(x[4 * i + 3]));
        reinterpret_cast<char4*>(y)[i] = four;
    }
    for (int64_t i = 4 * fours + first; i < n; i += stride) {
        y[i] = static_cast<signed char>(quantised(x[i]));
    }
}

torch::Tensor quantise_rows(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "quantise_rows: float32 on a CUDA device");
    x = x.contiguous();
    auto y = at::empty(x.sizes(), x.options().dtype(at::kChar));
    if (const int64_t n = x.numel()) {
        const unsigned blocks = static_cast<unsigned>(std::min<int64_t>((n / 4 + 256) / 256, 4096));
        quantise<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), reinterpret_cast<signed char*>(y.data_ptr()), n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="quantise_ptx",
    cpp_sources="torch::Tensor quantise_rows(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["quantise_rows"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.quantise_rows(x)
