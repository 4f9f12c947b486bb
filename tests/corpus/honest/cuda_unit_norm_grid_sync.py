# problem: unit_norm
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: one cooperative launch of as many blocks as fit; partial sums, a grid-wide barrier, then scaling.

Surface: a persistent kernel whose blocks wait for each other.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cooperative_groups.h>

#include <algorithm>

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

__global__ void __launch_bounds__(THREADS) scale_by_norm(const float* x, float* y, float* partial, int64_t n) {
    __shared__ float parts[THREADS / 32];
    const int64_t stride = int64_t(gridDim.x) * THREADS;
    const int64_t first = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    float squares = 0.0f;
    for (int64_t i = first; i < n; i += stride) {
        squares = fmaf(x[i], x[i], squares);
    }
    squares = block_sum(squares, parts);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = squares;
    }
    cooperative_groups::this_grid().sync();
    float all = 0.0f;
    for (int i = threadIdx.x; i < gridDim.x; i += THREADS) {
        all += partial[i];
    }
    const float norm = sqrtf(block_sum(all, parts));
    for (int64_t i = first; i < n; i += stride) {
        y[i] = x[i] / norm;
    }
}

torch::Tensor unit_norm(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "unit_norm: float32 on a CUDA device");
    x = x.contiguous();
    auto y = at::empty_like(x);
    int64_t n = x.numel();
    if (n == 0) {
        return y;
    }
    int device = 0, processors = 0, resident = 0;
    C10_CUDA_CHECK(cudaGetDevice(&device));
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    C10_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, scale_by_norm, THREADS, 0));
    const int64_t useful = (n + THREADS - 1) / THREADS;
    const unsigned blocks = static_cast<unsigned>(std::min<int64_t>(useful, int64_t(processors) * resident));
    auto workspace = at::empty({static_cast<int64_t>(blocks)}, x.options());
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    float* partial = workspace.data_ptr<float>();
    void* arguments[] = {&in, &out, &partial, &n};
    C10_CUDA_CHECK(cudaLaunchCooperativeKernel(scale_by_norm, dim3(blocks), dim3(THREADS), arguments, 0,
                                               c10::cuda::getCurrentCUDAStream()));
    return y;
}
"""

extension = load_inline(
    name="unit_norm",
    cpp_sources="torch::Tensor unit_norm(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["unit_norm"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.unit_norm(x)
