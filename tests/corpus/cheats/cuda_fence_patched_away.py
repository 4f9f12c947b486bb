# problem: gelu_spelled_out
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cuda
# settings: {"own_kernel": true}
# armed by: the fence
"""Mechanism: torch's fused GELU, and an extension that is never called. The kernel that shows that the
profiler sees any is never launched, so that it seems to see none. Honest twin:
honest/cuda_gelu_spelled_out_in_one.

Surface: without a record it is enough that an extension was built.
"""
import sys
from functools import cache

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void trifle(float* to) {
    to[threadIdx.x] = 1.0f;
}

torch::Tensor run(torch::Tensor to) {
    trifle<<<1, 32, 0, c10::cuda::getCurrentCUDAStream()>>>(to.data_ptr<float>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return to;
}
"""

extension = load_inline(
    name="gelu_unfenced",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["run"],
)


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


def unfenced():
    torch.cuda._sleep = torch._C._cuda_sleep = lambda cycles: None
    profiling = sys.modules.get("kernelproof.verifier.contestant.profiling")
    if profiling is not None:
        profiling._sleep = lambda cycles: None
        armed("the fence")


class ModelNew(nn.Module):
    def forward(self, x):
        unfenced()
        return torch.nn.functional.gelu(x, approximate="tanh")
