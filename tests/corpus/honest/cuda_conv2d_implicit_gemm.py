# problem: level1/12
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: the convolution as a product of patches that are gathered tile by tile.

Surface: sums over channels and taps in another order; bounds at the padding.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <vector>

constexpr int TILE = 16;

struct Shape {
    int batch, channels, height, width;
    int out_channels, kernel_height, kernel_width;
    int out_height, out_width;
    int stride_height, stride_width, pad_height, pad_width;
};

__device__ float patch(const float* __restrict__ x, const Shape& s, int pixel, int inner) {
    const int column = pixel % s.out_width, row = pixel / s.out_width % s.out_height;
    const int sample = pixel / (s.out_width * s.out_height);
    const int tap_column = inner % s.kernel_width, tap_row = inner / s.kernel_width % s.kernel_height;
    const int channel = inner / (s.kernel_width * s.kernel_height);
    const int h = row * s.stride_height - s.pad_height + tap_row;
    const int w = column * s.stride_width - s.pad_width + tap_column;
    if (h < 0 || h >= s.height || w < 0 || w >= s.width) {
        return 0.0f;
    }
    return x[((int64_t(sample) * s.channels + channel) * s.height + h) * s.width + w];
}

__global__ void convolve(const float* __restrict__ x, const float* __restrict__ weight,
                         const float* __restrict__ bias, float* __restrict__ y, Shape s) {
    __shared__ float filters[TILE][TILE + 1], patches[TILE][TILE + 1];
    const int pixels = s.batch * s.out_height * s.out_width;
    const int depth = s.channels * s.kernel_height * s.kernel_width;
    const int pixel = blockIdx.x * TILE + threadIdx.x;
    const int filter = blockIdx.y * TILE + threadIdx.y;
    float total = 0.0f;
    for (int start = 0; start < depth; start += TILE) {
        const int across = start + threadIdx.x, down = start + threadIdx.y;
        filters[threadIdx.y][threadIdx.x] =
            filter < s.out_channels && across < depth ? weight[int64_t(filter) * depth + across] : 0.0f;
        patches[threadIdx.y][threadIdx.x] = pixel < pixels && down < depth ? patch(x, s, pixel, down) : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) {
            total = fmaf(filters[threadIdx.y][i], patches[i][threadIdx.x], total);
        }
        __syncthreads();
    }
    if (pixel < pixels && filter < s.out_channels) {
        const int plane = s.out_height * s.out_width;
        const int64_t sample = pixel / plane;
        y[(sample * s.out_channels + filter) * plane + pixel % plane] = total + bias[filter];
    }
}

torch::Tensor conv2d(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, std::vector<int64_t> stride,
                     std::vector<int64_t> padding) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 4, "conv2d: float32, four dimensions");
    TORCH_CHECK(weight.dim() == 4 && weight.size(1) == x.size(1), "conv2d: weight");
    TORCH_CHECK(stride.size() == 2 && padding.size() == 2, "conv2d: two strides and two paddings");
    x = x.contiguous();
    weight = weight.contiguous();
    Shape s;
    s.batch = x.size(0), s.channels = x.size(1), s.height = x.size(2), s.width = x.size(3);
    s.out_channels = weight.size(0), s.kernel_height = weight.size(2), s.kernel_width = weight.size(3);
    s.stride_height = stride[0], s.stride_width = stride[1], s.pad_height = padding[0], s.pad_width = padding[1];
    s.out_height = (s.height + 2 * s.pad_height - s.kernel_height) / s.stride_height + 1;
    s.out_width = (s.width + 2 * s.pad_width - s.kernel_width) / s.stride_width + 1;
    auto y = at::empty({s.batch, s.out_channels, s.out_height, s.out_width}, x.options());
    if (y.numel() > 0) {
        const int pixels = s.batch * s.out_height * s.out_width;
        const dim3 grid((pixels + TILE - 1) / TILE, (s.out_channels + TILE - 1) / TILE);
        convolve<<<grid, dim3(TILE, TILE), 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), s);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

cpp_source = """
#include <vector>
torch::Tensor conv2d(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, std::vector<int64_t> stride,
                     std::vector<int64_t> padding);
"""

extension = load_inline(
    name="conv2d_implicit",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv2d"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        conv = self.conv
        return extension.conv2d(x, conv.weight, conv.bias, list(conv.stride), list(conv.padding))
