# problem: weighted_list
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: one kernel takes the addresses of all matrices by value, in a struct of its parameters.

Surface: a list of tensors goes to C++; their addresses change from call to call.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

constexpr int MOST = 32;

struct Parts {
    const float* place[MOST];
};

__global__ void add_weighted(const Parts parts, const float* __restrict__ weights, float* __restrict__ y, int count,
                             int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        float sum = 0.0f;
        for (int part = 0; part < count; ++part) {
            sum = fmaf(weights[part], parts.place[part][i], sum);
        }
        y[i] = sum;
    }
}

torch::Tensor weighted_sum(std::vector<torch::Tensor> tensors, torch::Tensor weights) {
    TORCH_CHECK(!tensors.empty() && tensors.size() <= MOST, "weighted_sum: 1 to 32 tensors");
    TORCH_CHECK(weights.numel() == static_cast<int64_t>(tensors.size()), "weighted_sum: a weight for each");
    Parts parts = {};
    for (size_t i = 0; i < tensors.size(); ++i) {
        TORCH_CHECK(tensors[i].scalar_type() == at::kFloat && tensors[i].sizes() == tensors[0].sizes(), "float32");
        tensors[i] = tensors[i].contiguous();
        parts.place[i] = tensors[i].data_ptr<float>();
    }
    weights = weights.contiguous();
    auto y = at::empty_like(tensors[0]);
    if (const int64_t n = y.numel()) {
        const unsigned blocks = static_cast<unsigned>(std::min<int64_t>((n + 255) / 256, 4096));
        add_weighted<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            parts, weights.data_ptr<float>(), y.data_ptr<float>(), static_cast<int>(tensors.size()), n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="weighted_pointers",
    cpp_sources="torch::Tensor weighted_sum(std::vector<torch::Tensor> tensors, torch::Tensor weights);",
    cuda_sources=cuda_source,
    functions=["weighted_sum"],
)


class ModelNew(nn.Module):
    def forward(self, parts, weights):
        return extension.weighted_sum(list(parts), weights)
