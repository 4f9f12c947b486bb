# problem: level1/3
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: one thread asks for a whole row by a bulk copy (`cp.async.bulk`); an mbarrier counts its bytes in.

Surface: loads that no thread carries out; rows whose length does not allow it are read in the ordinary way.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;

__device__ float block_sum(float value, float* parts) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float total = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) {
        total += parts[i];
    }
    __syncthreads();
    return total;
}

__device__ void fetch_row(float* row, const float* from, int features) {
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    const unsigned bytes = features * sizeof(float);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         static_cast<unsigned>(__cvta_generic_to_shared(row))),
                     "l"(from), "r"(bytes), "r"(place)
                     : "memory");
    }
    unsigned done = 0;
    while (done == 0) {
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
            : "=r"(done) : "r"(place) : "memory");
    }
}

__global__ void __launch_bounds__(THREADS) normalise(const float* __restrict__ x, const float* __restrict__ weight,
                                                     const float* __restrict__ bias, float* __restrict__ y,
                                                     int features, float eps, bool bulk) {
    extern __shared__ __align__(128) float row[];
    __shared__ float parts[THREADS / 32];
    const int64_t base = int64_t(blockIdx.x) * features;
    if (bulk) {
        fetch_row(row, x + base, features);
    } else {
        for (int i = threadIdx.x; i < features; i += THREADS) {
            row[i] = x[base + i];
        }
        __syncthreads();
    }
    float total = 0.0f;
    for (int i = threadIdx.x; i < features; i += THREADS) {
        total += row[i];
    }
    const float mean = block_sum(total, parts) / features;
    total = 0.0f;
    for (int i = threadIdx.x; i < features; i += THREADS) {
        total = fmaf(row[i] - mean, row[i] - mean, total);
    }
    const float factor = rsqrtf(block_sum(total, parts) / features + eps);
    for (int i = threadIdx.x; i < features; i += THREADS) {
        y[base + i] = fmaf((row[i] - mean) * factor, weight[i], bias[i]);
    }
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "layer_norm: float32 on a CUDA device");
    x = x.contiguous();
    auto y = at::empty_like(x);
    const int features = static_cast<int>(x.size(-1));
    const int bytes = features * static_cast<int>(sizeof(float));
    const bool bulk = bytes % 16 == 0 && reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0;
    C10_CUDA_CHECK(cudaFuncSetAttribute(normalise, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    if (x.numel() > 0) {
        const unsigned rows = static_cast<unsigned>(x.numel() / features);
        normalise<<<rows, THREADS, bytes, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), features,
            static_cast<float>(eps), bulk);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="layer_norm_bulk",
    cpp_sources="torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);",
    cuda_sources=cuda_source,
    functions=["layer_norm"],
    extra_cuda_cflags=["-O3", "-gencode=arch=compute_90a,code=sm_90a"],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return extension.layer_norm(x, self.norm.weight, self.norm.bias, self.norm.eps)
