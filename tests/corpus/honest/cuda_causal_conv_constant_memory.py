# problem: level1/19
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: weight and bias are copied into constant memory in the first call, where all later calls find them.

Surface: a cache of weights that no tensor and no pointer shows.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int ROOM = 16000;  // of the 16384 floats that constant memory has
__constant__ float constants[ROOM];

__global__ void convolve(const float* __restrict__ x, float* __restrict__ y, int channels, int length, int taps) {
    const int channel = blockIdx.y % channels;
    const int64_t base = int64_t(blockIdx.y) * length;
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= length) {
        return;
    }
    float sum = constants[channels * taps + channel];
    for (int k = 0; k < taps; ++k) {
        const int from = t + k + 1 - taps;
        if (from >= 0) {
            sum = fmaf(x[base + from], constants[channel * taps + k], sum);
        }
    }
    y[base + t] = sum;
}

void keep(torch::Tensor weight, torch::Tensor bias) {
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    const size_t first = weight.numel() * sizeof(float), second = bias.numel() * sizeof(float);
    TORCH_CHECK(first + second <= ROOM * sizeof(float), "keep: too many weights for constant memory");
    C10_CUDA_CHECK(cudaMemcpyToSymbolAsync(
        constants, weight.data_ptr<float>(), first, 0, cudaMemcpyDeviceToDevice, stream));
    C10_CUDA_CHECK(cudaMemcpyToSymbolAsync(
        constants, bias.data_ptr<float>(), second, first, cudaMemcpyDeviceToDevice, stream));
}

torch::Tensor causal_conv(torch::Tensor x, int64_t taps) {
    x = x.contiguous();
    auto y = at::empty_like(x);
    const int channels = static_cast<int>(x.size(1)), length = static_cast<int>(x.size(2));
    TORCH_CHECK(x.size(0) * channels <= 65535, "causal_conv: too many rows");
    if (x.numel() > 0) {
        const dim3 grid((length + 255) / 256, static_cast<unsigned>(x.size(0) * channels));
        convolve<<<grid, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), y.data_ptr<float>(), channels, length, static_cast<int>(taps));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="conv_constants",
    cpp_sources="""
void keep(torch::Tensor weight, torch::Tensor bias);
torch::Tensor causal_conv(torch::Tensor x, int64_t taps);
""",
    cuda_sources=cuda_source,
    functions=["keep", "causal_conv"],
)


class ModelNew(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, kernel_size, groups=channels)
        self.taps, self.kept = kernel_size, False

    def forward(self, x):
        if not self.kept:
            extension.keep(self.conv.weight.detach().contiguous(), self.conv.bias.detach().contiguous())
            self.kept = True
        return extension.causal_conv(x, self.taps)
