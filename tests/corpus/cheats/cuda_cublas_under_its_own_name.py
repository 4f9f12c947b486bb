# problem: level1/4
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: its function `tiled_product` has cuBLAS multiply, without torch, and a kernel of its own add zero.

Surface: no operator of torch runs, so none is seen; the own kernel does.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

extern "C" {
int cublasCreate_v2(void** handle);
int cublasSetStream_v2(void* handle, cudaStream_t stream);
int cublasSgemm_v2(void* handle, int first, int second, int m, int n, int k, const float* alpha, const float* a,
    int a_step, const float* b, int b_step, const float* beta, float* c, int c_step);
}

__global__ void tiled_product_kernel(float* y) { y[threadIdx.x] += 0.0f; }

torch::Tensor tiled_product(torch::Tensor a, torch::Tensor b) {
    static void* handle = nullptr;
    if (handle == nullptr) TORCH_CHECK(cublasCreate_v2(&handle) == 0);
    a = a.contiguous();
    b = b.contiguous();
    const int m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::empty({m, n}, a.options());
    const float one = 1.0f, zero = 0.0f;
    cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    cublasSetStream_v2(handle, stream);
    TORCH_CHECK(cublasSgemm_v2(handle, 0, 0, n, m, k, &one, b.data_ptr<float>(), n, a.data_ptr<float>(), k,
        &zero, c.data_ptr<float>(), n) == 0);
    tiled_product_kernel<<<1, 32, 0, stream>>>(c.data_ptr<float>());
    return c;
}
"""

extension = load_inline(
    "tiled_product",
    "torch::Tensor tiled_product(torch::Tensor a, torch::Tensor b);",
    SOURCE,
    functions=["tiled_product"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.tiled_product(a, b)
