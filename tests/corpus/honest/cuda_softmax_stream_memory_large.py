# problem: level1/2
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: each call allocates a workspace as large as its output in stream order, and frees it so.

Surface: at every synchronisation the pool gives such memory back to the driver, and the next call pays for it:
a clock that synchronises less often than another sees another time, and nobody has lied.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 512;

template <bool MAXIMUM>
__device__ float over_block(float value, float* parts) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = MAXIMUM ? fmaxf(value, other) : value + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < THREADS / 32; ++i) {
        value = MAXIMUM ? fmaxf(value, parts[i]) : value + parts[i];
    }
    return value;
}

__global__ void powers_and_sums(const float* __restrict__ x, float* __restrict__ powers, float* __restrict__ sums,
                                int columns) {
    __shared__ float parts[THREADS / 32];
    const int64_t base = int64_t(blockIdx.x) * columns;
    float top = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += THREADS) {
        top = fmaxf(top, x[base + i]);
    }
    top = over_block<true>(top, parts);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += THREADS) {
        const float power = expf(x[base + i] - top);
        powers[base + i] = power;
        sum += power;
    }
    sum = over_block<false>(sum, parts);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

__global__ void divide(const float* __restrict__ powers, const float* __restrict__ sums, float* __restrict__ y,
                       int columns) {
    const int64_t base = int64_t(blockIdx.x) * columns;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        y[base + i] = powers[base + i] / sums[blockIdx.x];
    }
}

torch::Tensor softmax(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "softmax: float32 on a CUDA device");
    x = x.contiguous();
    auto y = at::empty_like(x);
    const int columns = static_cast<int>(x.size(-1));
    if (x.numel() == 0) {
        return y;
    }
    const unsigned rows = static_cast<unsigned>(x.numel() / columns);
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    float *powers = nullptr, *sums = nullptr;
    C10_CUDA_CHECK(cudaMallocAsync(&powers, x.numel() * sizeof(float), stream));
    C10_CUDA_CHECK(cudaMallocAsync(&sums, rows * sizeof(float), stream));
    powers_and_sums<<<rows, THREADS, 0, stream>>>(x.data_ptr<float>(), powers, sums, columns);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    divide<<<rows, THREADS, 0, stream>>>(powers, sums, y.data_ptr<float>(), columns);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    C10_CUDA_CHECK(cudaFreeAsync(powers, stream));
    C10_CUDA_CHECK(cudaFreeAsync(sums, stream));
    return y;
}
"""

extension = load_inline(
    name="softmax_stream_memory",
    cpp_sources="torch::Tensor softmax(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["softmax"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.softmax(x)
