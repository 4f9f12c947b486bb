# problem: level1/9
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: its own function, spread over the elements by `gpu_kernel` of torch's installed header Loops.cuh.

Surface: the launch is named `at::native::vectorized_elementwise_kernel`, though the extension compiled it.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cuda/Loops.cuh>

torch::Tensor gelu(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "gelu: float32 on a CUDA device");
    auto y = at::empty_like(x);
    auto over = at::TensorIterator::unary_op(y, x);
    at::native::gpu_kernel(over, [] GPU_LAMBDA(float v) -> float { return 0.5f * v * erfcf(-0.70710678f * v); });
    return y;
}
"""

extension = load_inline(
    name="gelu_loops",
    cpp_sources="torch::Tensor gelu(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["gelu"],
    extra_cuda_cflags=["--extended-lambda"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.gelu(x)
