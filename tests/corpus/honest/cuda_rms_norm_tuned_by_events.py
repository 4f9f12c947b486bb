# problem: level1/11
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: the first call of a shape times three block sizes with CUDA events and keeps the fastest.

Surface: events, a synchronisation, more work in the first call than later; which kernel runs is not certain.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <utility>

template <int THREADS>
__global__ void __launch_bounds__(THREADS) rms_norm_rows(const float* __restrict__ x, const float* __restrict__ weight,
                                                         float* __restrict__ y, int features, float eps) {
    __shared__ float parts[THREADS / 32];
    const int64_t base = int64_t(blockIdx.x) * features;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < features; i += THREADS) {
        squares = fmaf(x[base + i], x[base + i], squares);
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = squares;
    }
    __syncthreads();
    float total = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) {
        total += parts[i];
    }
    const float factor = rsqrtf(total / features + eps);
    for (int i = threadIdx.x; i < features; i += THREADS) {
        y[base + i] = x[base + i] * factor * weight[i];
    }
}

using Arguments = std::pair<unsigned, int>;  // rows and features

template <int THREADS>
static void launch(const float* x, const float* weight, float* y, Arguments size, float eps, cudaStream_t stream) {
    rms_norm_rows<THREADS><<<size.first, THREADS, 0, stream>>>(x, weight, y, size.second, eps);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

using Launch = void (*)(const float*, const float*, float*, Arguments, float, cudaStream_t);

static Launch fastest(const float* x, const float* weight, float* y, Arguments size, float eps, cudaStream_t stream) {
    cudaEvent_t begin, end;
    C10_CUDA_CHECK(cudaEventCreate(&begin));
    C10_CUDA_CHECK(cudaEventCreate(&end));
    Launch best = nullptr;
    float least = INFINITY;
    for (Launch each : {launch<128>, launch<256>, launch<1024>}) {
        each(x, weight, y, size, eps, stream);
        C10_CUDA_CHECK(cudaEventRecord(begin, stream));
        each(x, weight, y, size, eps, stream);
        C10_CUDA_CHECK(cudaEventRecord(end, stream));
        C10_CUDA_CHECK(cudaEventSynchronize(end));
        float milliseconds = 0.0f;
        C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        if (milliseconds < least) {
            least = milliseconds;
            best = each;
        }
    }
    C10_CUDA_CHECK(cudaEventDestroy(begin));
    C10_CUDA_CHECK(cudaEventDestroy(end));
    return best;
}

torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double eps) {
    static std::map<Arguments, Launch> tuned;
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() > 0) {
        const int features = static_cast<int>(x.size(-1));
        const Arguments size{static_cast<unsigned>(x.numel() / features), features};
        const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
        const float *in = x.data_ptr<float>(), *factors = weight.data_ptr<float>();
        Launch& chosen = tuned[size];
        if (chosen == nullptr) {
            chosen = fastest(in, factors, y.data_ptr<float>(), size, static_cast<float>(eps), stream);
        }
        chosen(in, factors, y.data_ptr<float>(), size, static_cast<float>(eps), stream);
    }
    return y;
}
"""

extension = load_inline(
    name="rms_norm_tuned",
    cpp_sources="torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double eps);",
    cuda_sources=cuda_source,
    functions=["rms_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.randn(features)), eps

    def forward(self, x):
        return extension.rms_norm(x, self.weight.detach(), self.eps)
