# problem: row_means
# expected: correct
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: adds partial sums of splits into a workspace that is zero before the first call.

Surface: each call reads what the call before left there.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;

__global__ void __launch_bounds__(THREADS) add_splits(const float* __restrict__ x, float* __restrict__ sums,
                                                      int64_t columns) {
    __shared__ float parts[THREADS];
    const float* in = x + blockIdx.y * columns;
    const int64_t stride = int64_t(gridDim.x) * THREADS;
    float value = 0.0f;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < columns; i += stride) {
        value += in[i];
    }
    parts[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            parts[threadIdx.x] += parts[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.y * gridDim.x + blockIdx.x] += parts[0];
    }
}

__global__ void take_means(float* __restrict__ sums, float* __restrict__ means, int splits, int64_t rows,
                           int64_t columns) {
    const int64_t row = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    float total = 0.0f;
    for (int i = 0; i < splits; ++i) {
        total += sums[row * splits + i];
        sums[row * splits + i] = 0.0f;  // for the next call
    }
    means[row] = total / columns;
}

torch::Tensor row_means(torch::Tensor x, torch::Tensor sums) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 2, "row_means: a float32 matrix");
    x = x.contiguous();
    const int64_t rows = x.size(0), columns = x.size(1);
    auto means = at::empty({rows}, x.options());
    if (rows > 0) {
        const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
        const int splits = static_cast<int>(sums.size(1));
        const dim3 grid(splits, static_cast<unsigned>(rows));
        add_splits<<<grid, THREADS, 0, stream>>>(x.data_ptr<float>(), sums.data_ptr<float>(), columns);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        take_means<<<static_cast<unsigned>((rows + 63) / 64), 64, 0, stream>>>(
            sums.data_ptr<float>(), means.data_ptr<float>(), splits, rows, columns);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return means;
}
"""

extension = load_inline(
    name="split_means_into_zeroed_workspace",
    cpp_sources="torch::Tensor row_means(torch::Tensor x, torch::Tensor sums);",
    cuda_sources=cuda_source,
    functions=["row_means"],
    extra_cuda_cflags=["-O3"],
)

SPLITS = 8


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.sums = None

    def forward(self, x):
        if self.sums is None or self.sums.shape[0] != x.shape[0]:
            self.sums = torch.zeros(x.shape[0], SPLITS, device=x.device)
        return extension.row_means(x, self.sums)
