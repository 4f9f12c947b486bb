# problem: level1/9
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: a kernel template over nested types, launched by its address from a table through cudaLaunchKernel.

Surface: a name of thousands of letters, in which `at_native`, `cublas` and `gemm` occur; no `<<<` in the source.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

namespace at_native_like_cublas_gemm {

template <typename Inner, int DEPTH>
struct step_of_an_expression_that_was_written_by_a_generator {
    static __device__ float apply(float v) {
        return Inner::apply(v);
    }
};

struct gelu_leaf {
    static __device__ float apply(float v) {
        return 0.5f * v * erfcf(-0.70710678f * v);
    }
};

template <int DEPTH>
struct nested {
    using type = step_of_an_expression_that_was_written_by_a_generator<typename nested<DEPTH - 1>::type, DEPTH>;
};

template <>
struct nested<0> {
    using type = gelu_leaf;
};

template <typename Expression, int UNROLL>
__global__ void elementwise_kernel(const float* x, float* y, int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
#pragma unroll UNROLL
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] = Expression::apply(x[i]);
    }
}

}  // namespace at_native_like_cublas_gemm

torch::Tensor gelu(torch::Tensor x) {
    using namespace at_native_like_cublas_gemm;
    static const void* const table[] = {
        reinterpret_cast<const void*>(&elementwise_kernel<nested<8>::type, 1>),
        reinterpret_cast<const void*>(&elementwise_kernel<nested<40>::type, 4>),
    };
    x = x.contiguous();
    auto y = at::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    int64_t n = x.numel();
    if (n > 0) {
        void* arguments[] = {&in, &out, &n};
        const unsigned blocks = static_cast<unsigned>(std::min<int64_t>((n + 255) / 256, 4096));
        C10_CUDA_CHECK(cudaLaunchKernel(table[n > (1 << 20)], dim3(blocks), dim3(256), arguments, 0,
                                        c10::cuda::getCurrentCUDAStream()));
    }
    return y;
}
"""

extension = load_inline(
    name="gelu_long_names",
    cpp_sources="torch::Tensor gelu(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["gelu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.gelu(x)
