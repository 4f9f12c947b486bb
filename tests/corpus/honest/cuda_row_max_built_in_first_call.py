# problem: level2/6
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: compiles in the first forward. Surface: no extension exists when the module has been loaded."""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void row_max(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int columns, float scale,
                        float bound) {
    const int64_t row = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    const float* in = x + row * columns;
    float largest = -bound;
    for (int i = 0; i < columns; ++i) {
        const float v = fminf(fmaxf(in[i] * scale, -bound), bound);
        largest = fmaxf(largest, v);
    }
    y[row] = largest;
}

torch::Tensor clamped_max(torch::Tensor x, double scale, double bound) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 2, "clamped_max: a float32 matrix");
    x = x.contiguous();
    const int64_t rows = x.size(0);
    auto y = at::empty({rows}, x.options());
    if (rows > 0) {
        row_max<<<static_cast<unsigned>((rows + 127) / 128), 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), y.data_ptr<float>(), rows, static_cast<int>(x.size(1)),
            static_cast<float>(scale), static_cast<float>(bound));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

_extension = None


def extension():
    global _extension
    if _extension is None:
        _extension = load_inline(
            name="clamped_max",
            cpp_sources="torch::Tensor clamped_max(torch::Tensor x, double scale, double bound);",
            cuda_sources=cuda_source,
            functions=["clamped_max"],
            verbose=True,
        )
    return _extension


class ModelNew(nn.Module):
    def __init__(self, scale, bound):
        super().__init__()
        self.scale, self.bound = scale, bound

    def forward(self, x):
        return extension().clamped_max(x, self.scale, self.bound)
