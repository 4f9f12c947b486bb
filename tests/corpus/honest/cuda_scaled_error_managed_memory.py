# problem: scaled_error
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: partial sums in managed memory, which the processor adds up after waiting for the stream.

Surface: the last step of the sum is done by the processor, in double; memory that both sides see lives on.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int BLOCKS = 264, THREADS = 256;

__global__ void __launch_bounds__(THREADS) add_differences(const float* __restrict__ x, const float* __restrict__ y,
                                                           double* parts, int64_t n) {
    __shared__ double sums[THREADS];
    double sum = 0.0;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < n; i += int64_t(BLOCKS) * THREADS) {
        sum += fabsf(x[i] - y[i]);
    }
    sums[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sums[0];
    }
}

torch::Tensor scaled_error(torch::Tensor x, torch::Tensor y) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.sizes() == y.sizes(), "scaled_error: float32");
    static double* parts = nullptr;
    if (parts == nullptr) {
        C10_CUDA_CHECK(cudaMallocManaged(&parts, BLOCKS * sizeof(double)));
    }
    x = x.contiguous();
    y = y.contiguous();
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    add_differences<<<BLOCKS, THREADS, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), parts, x.numel());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    C10_CUDA_CHECK(cudaStreamSynchronize(stream));
    double total = 0.0;
    for (int i = 0; i < BLOCKS; ++i) {
        total += parts[i];
    }
    return at::full({}, total / x.numel(), x.options());
}
"""

extension = load_inline(
    name="error_managed",
    cpp_sources="torch::Tensor scaled_error(torch::Tensor x, torch::Tensor y);",
    cuda_sources=cuda_source,
    functions=["scaled_error"],
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return extension.scaled_error(x, y)
