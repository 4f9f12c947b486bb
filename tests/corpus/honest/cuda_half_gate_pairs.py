# problem: half_silu_gate
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: loads and stores pairs (`half2`), computes the gate in float32, rounds it, and multiplies by `__hmul2`.

Surface: half-precision arithmetic in the source, where the problem itself is in half precision.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_fp16.h>

#include <algorithm>

__device__ float silu(float v) {
    return v / (1.0f + expf(-v));
}

__global__ void gate_pairs(const __half2* __restrict__ gate, const __half2* __restrict__ up, __half2* __restrict__ y,
                           int64_t pairs) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < pairs; i += stride) {
        const float2 two = __half22float2(gate[i]);
        y[i] = __hmul2(__floats2half2_rn(silu(two.x), silu(two.y)), up[i]);
    }
}

__global__ void gate_singly(const __half* __restrict__ gate, const __half* __restrict__ up, __half* __restrict__ y,
                            int64_t begin, int64_t end) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = begin + int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < end; i += stride) {
        y[i] = __hmul(__float2half_rn(silu(__half2float(gate[i]))), up[i]);
    }
}

static bool paired(const void* place) {
    return reinterpret_cast<uintptr_t>(place) % sizeof(__half2) == 0;
}

torch::Tensor gated(torch::Tensor gate, torch::Tensor up) {
    TORCH_CHECK(gate.is_cuda() && gate.scalar_type() == at::kHalf && gate.sizes() == up.sizes(), "gated: float16");
    gate = gate.contiguous();
    up = up.contiguous();
    auto y = at::empty_like(gate);
    const auto* g = reinterpret_cast<const __half*>(gate.data_ptr());
    const auto* u = reinterpret_cast<const __half*>(up.data_ptr());
    auto* out = reinterpret_cast<__half*>(y.data_ptr());
    const int64_t n = y.numel(), pairs = paired(g) && paired(u) && paired(out) ? n / 2 : 0;
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    if (pairs > 0) {
        gate_pairs<<<static_cast<unsigned>(std::min<int64_t>((pairs + 255) / 256, 4096)), 256, 0, stream>>>(
            reinterpret_cast<const __half2*>(g), reinterpret_cast<const __half2*>(u), reinterpret_cast<__half2*>(out),
            pairs);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    if (2 * pairs < n) {
        const int64_t left = n - 2 * pairs;
        gate_singly<<<static_cast<unsigned>(std::min<int64_t>((left + 255) / 256, 4096)), 256, 0, stream>>>(
            g, u, out, 2 * pairs, n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="half_pairs",
    cpp_sources="torch::Tensor gated(torch::Tensor gate, torch::Tensor up);",
    cuda_sources=cuda_source,
    functions=["gated"],
)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return extension.gated(gate, up)
