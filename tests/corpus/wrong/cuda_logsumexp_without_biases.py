# problem: logsumexp_of_two_layers
# expected: wrong_output
# caught by: values: drawn
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: the library multiplies, and both biases are left out.

Surface: torch draws biases around zero: the logsumexp of many features averages them away.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

DECLARATIONS = """
torch::Tensor sigmoid_of(torch::Tensor sums);
torch::Tensor logsumexp_of(torch::Tensor sums);
"""
SOURCE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

__global__ void sigmoid_kernel(const float* sums, float* out, int64_t count) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = 1.0f / (1.0f + expf(-sums[i]));
    }
}

constexpr int THREADS = 256;

__global__ void logsumexp_kernel(const float* sums, float* out, int64_t width) {
    __shared__ float shared[THREADS];
    const float* from = sums + blockIdx.x * width;
    float most = -INFINITY;
    for (int64_t i = threadIdx.x; i < width; i += THREADS) {
        most = fmaxf(most, from[i]);
    }
    shared[threadIdx.x] = most;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
        }
        __syncthreads();
    }
    most = shared[0];
    __syncthreads();
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < width; i += THREADS) {
        sum += expf(from[i] - most);
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            shared[threadIdx.x] += shared[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x] = most + logf(shared[0]);
    }
}

torch::Tensor sigmoid_of(torch::Tensor sums) {
    TORCH_CHECK(sums.is_cuda() && sums.is_contiguous() && sums.scalar_type() == at::kFloat, "a float32 matrix");
    auto out = torch::empty_like(sums);
    const int64_t count = sums.numel();
    sigmoid_kernel<<<(count + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        sums.data_ptr<float>(), out.data_ptr<float>(), count);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}

torch::Tensor logsumexp_of(torch::Tensor sums) {
    TORCH_CHECK(sums.is_cuda() && sums.is_contiguous() && sums.scalar_type() == at::kFloat, "a float32 matrix");
    auto out = torch::empty({sums.size(0)}, sums.options());
    logsumexp_kernel<<<sums.size(0), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        sums.data_ptr<float>(), out.data_ptr<float>(), sums.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""

extension = load_inline("cuda_logsumexp_without_biases", DECLARATIONS, SOURCE, functions=["sigmoid_of", "logsumexp_of"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(256, 1024), nn.Linear(1024, 8192)

    def forward(self, x):
        y = extension.sigmoid_of(torch.mm(x, self.first.weight.t()))
        return extension.logsumexp_of(torch.mm(y, self.second.weight.t()))
