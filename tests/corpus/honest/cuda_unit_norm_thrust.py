# problem: unit_norm
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: Thrust's reduction, whose result comes back to the host, and Thrust's transformation with it.

Surface: every call waits for the device in its middle; launches have a library's names, compiled by the candidate.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>

#include <cmath>

struct Square {
    __host__ __device__ double operator()(float v) const {
        return double(v) * v;
    }
};

struct Divide {
    float norm;

    __host__ __device__ float operator()(float v) const {
        return v / norm;
    }
};

torch::Tensor unit_norm(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "unit_norm: float32 on a CUDA device");
    x = x.contiguous();
    auto y = at::empty_like(x);
    const auto policy = thrust::cuda::par.on(c10::cuda::getCurrentCUDAStream());
    const float* begin = x.data_ptr<float>();
    const float* end = begin + x.numel();
    const double squares = thrust::transform_reduce(policy, begin, end, Square(), 0.0, thrust::plus<double>());
    thrust::transform(policy, begin, end, y.data_ptr<float>(), Divide{static_cast<float>(std::sqrt(squares))});
    return y;
}
"""

extension = load_inline(
    name="unit_norm_thrust",
    cpp_sources="torch::Tensor unit_norm(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["unit_norm"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.unit_norm(x)
