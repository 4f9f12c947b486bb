# problem: level1/16
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: compiles in __init__ and keeps the extension as an attribute. Surface: when the build happens."""
from torch import nn
from torch.utils import cpp_extension

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void choose(const bool* __restrict__ mask, const float* __restrict__ left,
                       const float* __restrict__ right, float* __restrict__ y, int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] = mask[i] ? left[i] : right[i];
    }
}

torch::Tensor where_mask(torch::Tensor mask, torch::Tensor left, torch::Tensor right) {
    TORCH_CHECK(mask.is_cuda() && mask.scalar_type() == at::kBool, "where_mask: a bool mask on a CUDA device");
    TORCH_CHECK(left.scalar_type() == at::kFloat && right.scalar_type() == at::kFloat, "where_mask: float32");
    TORCH_CHECK(left.sizes() == mask.sizes() && right.sizes() == mask.sizes(), "where_mask: one shape");
    mask = mask.contiguous();
    left = left.contiguous();
    right = right.contiguous();
    auto y = at::empty_like(left);
    const int64_t n = y.numel();
    if (n > 0) {
        const int blocks = static_cast<int>(std::min<int64_t>((n + 255) / 256, 4096));
        choose<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            mask.data_ptr<bool>(), left.data_ptr<float>(), right.data_ptr<float>(), y.data_ptr<float>(), n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.extension = cpp_extension.load_inline(
            name="where_mask",
            cpp_sources=["torch::Tensor where_mask(torch::Tensor mask, torch::Tensor left, torch::Tensor right);"],
            cuda_sources=[cuda_source],
            functions="where_mask",
            with_cuda=True,
            extra_cflags=["-O3"],
            extra_cuda_cflags=["-O3", "-lineinfo"],
        )

    def forward(self, mask, left, right):
        return self.extension.where_mask(mask, left, right)
