# problem: level1/16
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: loads with `__ldcs`, stores with `__stcs`: lines that nobody needs again shall leave the cache first.

Surface: the candidate steers the cache, as one does that wants to keep its inputs in it.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void choose(const unsigned char* __restrict__ mask, const float* __restrict__ left,
                       const float* __restrict__ right, float* __restrict__ y, int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const float* from = __ldcs(mask + i) != 0 ? left : right;
        __stcs(y + i, __ldcs(from + i));
    }
}

torch::Tensor where_mask(torch::Tensor mask, torch::Tensor left, torch::Tensor right) {
    TORCH_CHECK(mask.is_cuda() && mask.scalar_type() == at::kBool, "where_mask: a bool mask on a CUDA device");
    TORCH_CHECK(left.sizes() == mask.sizes() && right.sizes() == mask.sizes(), "where_mask: one shape");
    mask = mask.contiguous();
    left = left.contiguous();
    right = right.contiguous();
    auto y = at::empty_like(left);
    if (const int64_t n = y.numel()) {
        const int blocks = static_cast<int>(std::min<int64_t>((n + 255) / 256, 4096));
        choose<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            reinterpret_cast<const unsigned char*>(mask.data_ptr<bool>()), left.data_ptr<float>(),
            right.data_ptr<float>(), y.data_ptr<float>(), n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="where_streaming",
    cpp_sources="torch::Tensor where_mask(torch::Tensor mask, torch::Tensor left, torch::Tensor right);",
    cuda_sources=cuda_source,
    functions=["where_mask"],
)


class ModelNew(nn.Module):
    def forward(self, mask, left, right):
        return extension.where_mask(mask, left, right)
