# problem: long_row_sums
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: blocks leave partial sums; the last one to finish a row, known by a counter, adds them up.

Surface: memory that lives on between calls: partial sums, and counters that the last block sets back to zero.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;

__device__ float block_sum(float value, float* parts) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        value += __shfl_down_sync(0xffffffffu, value, offset);
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

__global__ void __launch_bounds__(THREADS) add_up(const float* __restrict__ x, float* __restrict__ sums,
                                                  volatile float* partial, unsigned* finished, int64_t columns) {
    __shared__ float parts[THREADS / 32];
    __shared__ bool last;
    const int row = blockIdx.y;
    const float* in = x + row * columns;
    float value = 0.0f;
    const int64_t stride = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < columns; i += stride) {
        value += in[i];
    }
    const float mine = block_sum(value, parts);
    if (threadIdx.x == 0) {
        partial[row * gridDim.x + blockIdx.x] = mine;
        __threadfence();
        last = atomicAdd(finished + row, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) {
        return;
    }
    __threadfence();
    value = 0.0f;
    for (int i = threadIdx.x; i < gridDim.x; i += THREADS) {
        value += partial[row * gridDim.x + i];
    }
    const float total = block_sum(value, parts);
    if (threadIdx.x == 0) {
        sums[row] = total;
        finished[row] = 0;
    }
}

torch::Tensor row_sums(torch::Tensor x, torch::Tensor partial, torch::Tensor finished) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 2, "row_sums: a float32 matrix");
    x = x.contiguous();
    auto sums = at::empty({x.size(0)}, x.options());
    if (x.size(0) > 0) {
        TORCH_CHECK(partial.size(0) == x.size(0) && finished.size(0) == x.size(0), "row_sums: workspace");
        const dim3 grid(static_cast<unsigned>(partial.size(1)), static_cast<unsigned>(x.size(0)));
        add_up<<<grid, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), sums.data_ptr<float>(), partial.data_ptr<float>(),
            reinterpret_cast<unsigned*>(finished.data_ptr<int>()), x.size(1));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return sums;
}
"""

extension = load_inline(
    name="long_sums_last_block",
    cpp_sources="torch::Tensor row_sums(torch::Tensor x, torch::Tensor partial, torch::Tensor finished);",
    cuda_sources=cuda_source,
    functions=["row_sums"],
    extra_cuda_cflags=["-O3"],
)

BLOCKS = 40


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.partial = self.finished = None

    def forward(self, x):
        if self.partial is None or self.partial.shape[0] != x.shape[0]:
            self.partial = torch.empty(x.shape[0], BLOCKS, device=x.device)
            self.finished = torch.zeros(x.shape[0], dtype=torch.int32, device=x.device)
        return extension.row_sums(x, self.partial, self.finished)
