# problem: level2/7
# expected: wrong_output
# caught by: values: drawn
# devices: cuda
# settings: {"own_kernel": true, "size": "small"}
"""Mechanism: exponentials below 1/32 rounded to half precision.

Surface: an error that float32's floor accepts. Its honest twin is `cuda_masked_softmax_fast_exponentials`.
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_fp16.h>

// One warp a row. Every row has a key with a true mask.
__global__ void softmax_rows(const float* __restrict__ scores, const bool* __restrict__ mask,
                             float* __restrict__ y, int64_t rows, int heads, int queries, int keys, float factor) {
    const int lane = threadIdx.x % 32;
    const int64_t row = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) {
        return;
    }
    const float* in = scores + row * keys;
    const bool* keep = mask + (row / (int64_t(heads) * queries) * queries + row % queries) * keys;
    float* out = y + row * keys;
    float top = -INFINITY, total = 0.0f;
    for (int i = lane; i < keys; i += 32) {
        top = fmaxf(top, keep[i] ? in[i] * factor : -INFINITY);
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
    }
    for (int i = lane; i < keys; i += 32) {
        const float power = keep[i] ? exp2f(in[i] * factor - top) : 0.0f;
        out[i] = power < 1.0f / 32 ? __half2float(__float2half(power)) : power;
        total += out[i];
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        total += __shfl_xor_sync(0xffffffffu, total, offset);
    }
    for (int i = lane; i < keys; i += 32) {
        out[i] /= total;
    }
}

torch::Tensor masked_softmax(const torch::Tensor& scores, const torch::Tensor& mask, double factor) {
    const auto in = scores.contiguous(), keep = mask.contiguous();
    auto y = at::empty_like(in);
    const int64_t rows = in.size(0) * in.size(1) * in.size(2);
    if (in.numel() > 0) {
        softmax_rows<<<static_cast<unsigned>((rows + 3) / 4), 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
            in.data_ptr<float>(), keep.data_ptr<bool>(), y.data_ptr<float>(), rows, static_cast<int>(in.size(1)),
            static_cast<int>(in.size(2)), static_cast<int>(in.size(3)), static_cast<float>(factor));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="masked_softmax_half",
    cpp_sources="torch::Tensor masked_softmax(const torch::Tensor& scores, const torch::Tensor& mask, double factor);",
    cuda_sources=cuda_source,
    functions=["masked_softmax"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.factor = scale * 1.4426950408889634

    def forward(self, scores, mask):
        return extension.masked_softmax(scores, mask, self.factor)
