# problem: level1/20
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: lanes with equal values find each other by `__match_any_sync`, and one of them adds for all.

Surface: which lane adds, and how often memory is touched, depends on the values; the counts do not.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void count(const int64_t* __restrict__ x, unsigned long long* counts, int64_t n, int classes) {
    extern __shared__ unsigned here[];
    for (int i = threadIdx.x; i < classes; i += blockDim.x) {
        here[i] = 0;
    }
    __syncthreads();
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const int value = static_cast<int>(x[i]);
        const unsigned same = __match_any_sync(__activemask(), value);
        if (__ffs(same) - 1 == threadIdx.x % 32 && value >= 0 && value < classes) {
            atomicAdd(here + value, __popc(same));
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < classes; i += blockDim.x) {
        if (here[i] > 0) {
            atomicAdd(counts + i, static_cast<unsigned long long>(here[i]));
        }
    }
}

torch::Tensor histogram(torch::Tensor x, int64_t classes) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kLong, "histogram: int64 on a CUDA device");
    TORCH_CHECK(classes > 0 && classes <= 12000, "histogram: counts have to fit into shared memory");
    x = x.contiguous();
    auto counts = at::zeros({classes}, x.options());
    if (const int64_t n = x.numel()) {
        const int blocks = static_cast<int>(std::min<int64_t>((n + 511) / 512, 528));
        count<<<blocks, 512, classes * sizeof(unsigned), c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<int64_t>(), reinterpret_cast<unsigned long long*>(counts.data_ptr<int64_t>()), n,
            static_cast<int>(classes));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return counts;
}
"""

extension = load_inline(
    name="histogram_votes",
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
