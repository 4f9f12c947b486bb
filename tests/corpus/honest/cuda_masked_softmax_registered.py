# problem: level2/7
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: registers an operator with torch and calls it through torch.ops.

Surface: the library is no Python module; the dispatcher sees an operator of a foreign namespace.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

// One warp a row. Keys with a false mask have the score -inf.
__global__ void softmax_rows(const float* __restrict__ scores, const bool* __restrict__ mask,
                             float* __restrict__ y, int64_t rows, int heads, int queries, int keys, float scale) {
    const int lane = threadIdx.x % 32;
    const int64_t row = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) {
        return;
    }
    const int64_t mask_row = row / (int64_t(heads) * queries) * queries + row % queries;
    const float* in = scores + row * keys;
    const bool* keep = mask + mask_row * keys;
    float* out = y + row * keys;
    float top = -INFINITY;
    for (int i = lane; i < keys; i += 32) {
        top = fmaxf(top, keep[i] ? in[i] * scale : -INFINITY);
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
    }
    float total = 0.0f;
    for (int i = lane; i < keys; i += 32) {
        const float power = keep[i] ? expf(in[i] * scale - top) : 0.0f;
        out[i] = power;
        total += power;
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        total += __shfl_xor_sync(0xffffffffu, total, offset);
    }
    for (int i = lane; i < keys; i += 32) {
        out[i] = out[i] / total;  // 0 / 0 is NaN where every key is masked, as in torch
    }
}

torch::Tensor masked_softmax(const torch::Tensor& scores, const torch::Tensor& mask, double scale) {
    TORCH_CHECK(scores.is_cuda() && scores.scalar_type() == at::kFloat && scores.dim() == 4, "scores: float32");
    TORCH_CHECK(mask.is_cuda() && mask.scalar_type() == at::kBool && mask.dim() == 4 && mask.size(1) == 1, "mask: bool");
    TORCH_CHECK(mask.size(0) == scores.size(0) && mask.size(2) == scores.size(2) && mask.size(3) == scores.size(3),
                "mask: the shape of one head");
    const auto in = scores.contiguous(), keep = mask.contiguous();
    auto y = at::empty_like(in);
    if (in.numel() > 0) {
        const int64_t rows = in.size(0) * in.size(1) * in.size(2);
        softmax_rows<<<static_cast<unsigned>((rows + 3) / 4), 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
            in.data_ptr<float>(), keep.data_ptr<bool>(), y.data_ptr<float>(), rows, static_cast<int>(in.size(1)),
            static_cast<int>(in.size(2)), static_cast<int>(in.size(3)), static_cast<float>(scale));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

cpp_source = r"""
torch::Tensor masked_softmax(const torch::Tensor& scores, const torch::Tensor& mask, double scale);

TORCH_LIBRARY(masked_rows, m) {
    m.def("softmax(Tensor scores, Tensor mask, float scale) -> Tensor");
}

TORCH_LIBRARY_IMPL(masked_rows, CUDA, m) {
    m.impl("softmax", &masked_softmax);
}
"""

load_inline(name="masked_rows", cpp_sources=cpp_source, cuda_sources=cuda_source, is_python_module=False)


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, scores, mask):
        return torch.ops.masked_rows.softmax(scores, mask, self.scale)
