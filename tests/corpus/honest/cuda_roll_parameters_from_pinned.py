# problem: roll_and_scale
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: each call packs its numbers into new pinned memory and sends them by an asynchronous copy.

Surface: a copy from the host in every call, for which nobody waits; the host's memory is free again before it is read,
but torch's allocator of pinned memory knows of the copy.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void roll(const float* __restrict__ x, const double* __restrict__ numbers, float* __restrict__ y,
                     int64_t n, int columns) {
    const int shift = (static_cast<int>(numbers[0]) % columns + columns) % columns;
    const float factor = static_cast<float>(numbers[1]);
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const int64_t row = i / columns;
        const int from = static_cast<int>(i % columns) - shift;
        y[i] = x[row * columns + (from < 0 ? from + columns : from)] * factor;
    }
}

torch::Tensor roll_and_scale(torch::Tensor x, torch::Tensor numbers) {
    TORCH_CHECK(x.dim() == 2 && x.scalar_type() == at::kFloat, "roll_and_scale: a float32 matrix");
    TORCH_CHECK(numbers.is_cuda() && numbers.scalar_type() == at::kDouble && numbers.numel() == 2, "two numbers");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (const int64_t n = x.numel()) {
        const unsigned blocks = static_cast<unsigned>(std::min<int64_t>((n + 255) / 256, 4096));
        roll<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), numbers.data_ptr<double>(), y.data_ptr<float>(), n, static_cast<int>(x.size(1)));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="roll_pinned",
    cpp_sources="torch::Tensor roll_and_scale(torch::Tensor x, torch::Tensor numbers);",
    cuda_sources=cuda_source,
    functions=["roll_and_scale"],
)


class ModelNew(nn.Module):
    def forward(self, x, shift, factor):
        numbers = torch.tensor([shift, factor], dtype=torch.float64).pin_memory()
        return extension.roll_and_scale(x, numbers.to(x.device, non_blocking=True))
