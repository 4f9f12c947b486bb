# problem: spectrum
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: Stockham's transform of a row in shared memory for powers of two; else torch's.

Surface: complex outputs; roots from `sincospif` in float32; a fallback that the declared length never takes.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void transform_rows(const float* __restrict__ x, float2* __restrict__ y, int n) {
    extern __shared__ float2 room[];
    float2 *here = room, *there = room + n;
    const int64_t base = int64_t(blockIdx.x) * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        here[i] = make_float2(x[base + i], 0.0f);
    }
    for (int half = n / 2, stride = 1; half >= 1; half /= 2, stride *= 2) {
        __syncthreads();
        for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
            const int p = i / stride, q = i % stride;
            float sine, cosine;
            sincospif(-float(p) / half, &sine, &cosine);
            const float2 a = here[q + stride * p], b = here[q + stride * (p + half)];
            const float2 less = make_float2(a.x - b.x, a.y - b.y);
            there[q + stride * 2 * p] = make_float2(a.x + b.x, a.y + b.y);
            there[q + stride * (2 * p + 1)] =
                make_float2(less.x * cosine - less.y * sine, less.x * sine + less.y * cosine);
        }
        float2* const last = here;
        here = there;
        there = last;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        y[base + i] = here[i];
    }
}

torch::Tensor transform(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.dim() == 2 && x.scalar_type() == at::kFloat, "transform: a float32 matrix");
    x = x.contiguous();
    const int n = static_cast<int>(x.size(1));
    TORCH_CHECK(n > 0 && (n & (n - 1)) == 0 && n <= 2048, "transform: a power of two up to 2048");
    auto y = at::empty(x.sizes(), x.options().dtype(at::kComplexFloat));
    if (x.numel() > 0) {
        const int bytes = 2 * n * static_cast<int>(sizeof(float2));
        transform_rows<<<static_cast<unsigned>(x.size(0)), 256, bytes, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), reinterpret_cast<float2*>(y.data_ptr()), n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="spectrum_shared",
    cpp_sources="torch::Tensor transform(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["transform"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        length = x.shape[-1]
        ours = x.dim() == 2 and length <= 2048 and length & (length - 1) == 0
        return extension.transform(x) if ours else torch.fft.fft(x, dim=1)
