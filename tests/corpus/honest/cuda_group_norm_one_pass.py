# problem: group_norm_of_uniform
# expected: correct
# devices: cuda
"""Mechanism: one block a group; mean and variance in one pass, in partial sums that eight threads keep.

Surface: drawn and `negative` inputs: 100,000 terms in turn, and the mean is larger than the spread.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

constexpr int SUMS = 8;

__global__ void normalise(const float* x, float* out, long count, float eps) {
    __shared__ float sums[SUMS], squares[SUMS], moments[2];
    const float* from = x + blockIdx.x * count;
    float* to = out + blockIdx.x * count;
    if (threadIdx.x < SUMS) {
        float sum = 0.0f, square = 0.0f;
        for (long i = threadIdx.x; i < count; i += SUMS) {
            sum += from[i];
            square += from[i] * from[i];
        }
        sums[threadIdx.x] = sum;
        squares[threadIdx.x] = square;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f, square = 0.0f;
        for (int i = 0; i < SUMS; ++i) {
            sum += sums[i];
            square += squares[i];
        }
        const float mean = sum / count;
        moments[0] = mean;
        moments[1] = rsqrtf(fmaxf(square / count - mean * mean, 0.0f) + eps);
    }
    __syncthreads();
    for (long i = threadIdx.x; i < count; i += blockDim.x) {
        to[i] = (from[i] - moments[0]) * moments[1];
    }
}

torch::Tensor one_pass(const torch::Tensor& input, int64_t groups, double eps) {
    TORCH_CHECK(input.is_cuda() && input.scalar_type() == at::kFloat, "float32 on a GPU expected");
    const auto x = input.contiguous();
    auto out = at::empty_like(x);
    normalise<<<groups, 512, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), x.numel() / groups, static_cast<float>(eps));
    TORCH_CHECK(cudaGetLastError() == cudaSuccess, "launch failed");
    return out;
}
"""

extension = load_inline(
    name="cuda_group_norm_one_pass",
    cpp_sources="torch::Tensor one_pass(const torch::Tensor& input, int64_t groups, double eps);",
    cuda_sources=source,
    functions=["one_pass"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 8, affine=False)

    def forward(self, x):
        return extension.one_pass(x, x.shape[0] * 2, self.norm.eps)
