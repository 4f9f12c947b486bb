# problem: level1/13
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: refuses inputs that are not contiguous. Surface: an exception when views are tried."""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void pool(const float* __restrict__ x, float* __restrict__ y, int64_t n, int height, int width,
                     int out_height, int out_width, int size, int stride, int padding) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    const int column = static_cast<int>(i % out_width), row = static_cast<int>(i / out_width % out_height);
    const float* plane = x + i / (int64_t(out_width) * out_height) * height * width;
    const int top = row * stride - padding, left = column * stride - padding;
    float largest = -INFINITY;
    for (int h = max(top, 0); h < min(top + size, height); ++h) {
        for (int w = max(left, 0); w < min(left + size, width); ++w) {
            const float v = plane[int64_t(h) * width + w];
            largest = v > largest || isnan(v) ? v : largest;
        }
    }
    y[i] = largest;
}

torch::Tensor max_pool(torch::Tensor x, int64_t size, int64_t stride, int64_t padding) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 4, "max_pool: float32, four dimensions");
    TORCH_CHECK(x.is_contiguous(), "max_pool: contiguous inputs only");
    const int height = static_cast<int>(x.size(2)), width = static_cast<int>(x.size(3));
    const int out_height = static_cast<int>((height + 2 * padding - size) / stride + 1);
    const int out_width = static_cast<int>((width + 2 * padding - size) / stride + 1);
    auto y = at::empty({x.size(0), x.size(1), out_height, out_width}, x.options());
    const int64_t n = y.numel();
    if (n > 0) {
        pool<<<static_cast<unsigned>((n + 255) / 256), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), y.data_ptr<float>(), n, height, width, out_height, out_width,
            static_cast<int>(size), static_cast<int>(stride), static_cast<int>(padding));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="max_pool",
    cpp_sources="torch::Tensor max_pool(torch::Tensor x, int64_t size, int64_t stride, int64_t padding);",
    cuda_sources=cuda_source,
    functions=["max_pool"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x):
        return extension.max_pool(x, self.kernel_size, self.stride, self.padding)
