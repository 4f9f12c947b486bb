# problem: level1/1
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: four elements at a time where addresses allow, the last ones singly, in grid-stride loops.

Surface: two kernels, chosen by address and size; NaN passes through as in torch.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstdint>

__device__ __forceinline__ float positive(float v) { return v < 0.0f ? 0.0f : v; }

__global__ void relu_vectors(const float4* __restrict__ in, float4* __restrict__ out, int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const float4 v = in[i];
        out[i] = make_float4(positive(v.x), positive(v.y), positive(v.z), positive(v.w));
    }
}

__global__ void relu_singly(const float* __restrict__ in, float* __restrict__ out, int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        out[i] = positive(in[i]);
    }
}

static int blocks_for(int64_t n) { return static_cast<int>(std::min<int64_t>((n + 255) / 256, 4096)); }

torch::Tensor relu(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "relu: float32 on a CUDA device");
    x = x.contiguous();
    auto y = at::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    const int64_t n = x.numel();
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const bool aligned = (reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out)) % 16 == 0;
    const int64_t vectors = aligned ? n / 4 : 0;
    if (vectors > 0) {
        relu_vectors<<<blocks_for(vectors), 256, 0, stream>>>(
            reinterpret_cast<const float4*>(in), reinterpret_cast<float4*>(out), vectors);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    const int64_t rest = n - 4 * vectors;
    if (rest > 0) {
        relu_singly<<<blocks_for(rest), 256, 0, stream>>>(in + 4 * vectors, out + 4 * vectors, rest);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="relu_vectors",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["relu"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
