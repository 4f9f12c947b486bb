# problem: roll_and_scale
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: two strided copies (`cudaMemcpy2DAsync`) roll the rows, then a kernel scales them in place.

Surface: copies do half of the work, and a profile of kernels does not show them.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void scale(float* y, int64_t n, float factor) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] *= factor;
    }
}

torch::Tensor roll_and_scale(torch::Tensor x, int64_t shift, double factor) {
    TORCH_CHECK(x.is_cuda() && x.dim() == 2 && x.scalar_type() == at::kFloat, "roll_and_scale: a float32 matrix");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() == 0) {
        return y;
    }
    const int64_t rows = x.size(0), columns = x.size(1);
    const int64_t head = (shift % columns + columns) % columns, rest = columns - head;
    const size_t pitch = columns * sizeof(float);
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    const float* from = x.data_ptr<float>();
    float* to = y.data_ptr<float>();
    C10_CUDA_CHECK(cudaMemcpy2DAsync(
        to + head, pitch, from, pitch, rest * sizeof(float), rows, cudaMemcpyDeviceToDevice, stream));
    if (head > 0) {
        C10_CUDA_CHECK(cudaMemcpy2DAsync(
            to, pitch, from + rest, pitch, head * sizeof(float), rows, cudaMemcpyDeviceToDevice, stream));
    }
    const unsigned blocks = static_cast<unsigned>(std::min<int64_t>((y.numel() + 255) / 256, 4096));
    scale<<<blocks, 256, 0, stream>>>(to, y.numel(), static_cast<float>(factor));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline(
    name="roll_by_copies",
    cpp_sources="torch::Tensor roll_and_scale(torch::Tensor x, int64_t shift, double factor);",
    cuda_sources=cuda_source,
    functions=["roll_and_scale"],
)


class ModelNew(nn.Module):
    def forward(self, x, shift, factor):
        return extension.roll_and_scale(x, shift, factor)
