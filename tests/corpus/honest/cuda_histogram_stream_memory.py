# problem: level1/20
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: a histogram for each block in memory that is allocated and freed in stream order, then their sum.

Surface: memory that torch's allocator knows nothing of; atomics on integers, exact in any order.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

constexpr int THREADS = 256;

__global__ void count_parts(const int64_t* __restrict__ x, int* __restrict__ parts, int64_t n, int classes) {
    int* mine = parts + int64_t(blockIdx.x) * classes;
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const int64_t value = x[i];
        if (value >= 0 && value < classes) {
            atomicAdd(mine + value, 1);
        }
    }
}

__global__ void add_parts(const int* __restrict__ parts, int64_t* __restrict__ counts, int blocks, int classes) {
    const int value = blockIdx.x * blockDim.x + threadIdx.x;
    if (value < classes) {
        int64_t total = 0;
        for (int i = 0; i < blocks; ++i) {
            total += parts[int64_t(i) * classes + value];
        }
        counts[value] = total;
    }
}

torch::Tensor histogram(torch::Tensor x, int64_t classes) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kLong, "histogram: int64 on a CUDA device");
    TORCH_CHECK(classes > 0 && classes < (1 << 24), "histogram: number of classes");
    x = x.contiguous();
    auto counts = at::empty({classes}, x.options());
    const int64_t n = x.numel();
    const int blocks = static_cast<int>(std::clamp<int64_t>((n + 8 * THREADS - 1) / (8 * THREADS), 1, 264));
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    const size_t bytes = sizeof(int) * size_t(blocks) * size_t(classes);
    int* parts = nullptr;
    C10_CUDA_CHECK(cudaMallocAsync(&parts, bytes, stream));
    C10_CUDA_CHECK(cudaMemsetAsync(parts, 0, bytes, stream));
    count_parts<<<blocks, THREADS, 0, stream>>>(x.data_ptr<int64_t>(), parts, n, static_cast<int>(classes));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    add_parts<<<static_cast<unsigned>((classes + 127) / 128), 128, 0, stream>>>(
        parts, counts.data_ptr<int64_t>(), blocks, static_cast<int>(classes));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    C10_CUDA_CHECK(cudaFreeAsync(parts, stream));
    return counts;
}
"""

extension = load_inline(
    name="histogram_parts",
    cpp_sources="torch::Tensor histogram(torch::Tensor x, int64_t classes);",
    cuda_sources=cuda_source,
    functions=["histogram"],
)


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, x):
        return extension.histogram(x, self.classes)
