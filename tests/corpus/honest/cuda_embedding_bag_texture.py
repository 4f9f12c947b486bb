# problem: level2/12
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: the table is read through a texture object, which is made in the first call and kept by address.

Surface: an address that outlives the call, though of a weight; loads through the texture cache.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <utility>

__global__ void bags(cudaTextureObject_t table, const int64_t* __restrict__ index, const float* __restrict__ weight,
                     float* __restrict__ y, int bag_size, int features, float scale) {
    const int64_t bag = blockIdx.x;
    for (int f = threadIdx.x; f < features; f += blockDim.x) {
        float sum = 0.0f;
        for (int i = 0; i < bag_size; ++i) {
            const int row = static_cast<int>(index[bag * bag_size + i]);
            sum = fmaf(tex1Dfetch<float>(table, row * features + f), weight[bag * bag_size + i], sum);
        }
        y[bag * features + f] = tanhf(sum * scale);
    }
}

static cudaTextureObject_t texture_of(const torch::Tensor& table) {
    static std::map<std::pair<void*, int64_t>, cudaTextureObject_t> kept;
    auto [place, fresh] = kept.try_emplace({table.data_ptr(), table.numel()}, 0);
    if (fresh) {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeLinear;
        resource.res.linear.devPtr = table.data_ptr();
        resource.res.linear.desc = cudaCreateChannelDesc<float>();
        resource.res.linear.sizeInBytes = table.numel() * sizeof(float);
        cudaTextureDesc how = {};
        how.readMode = cudaReadModeElementType;
        C10_CUDA_CHECK(cudaCreateTextureObject(&place->second, &resource, &how, nullptr));
    }
    return place->second;
}

torch::Tensor embedding_bags(torch::Tensor table, torch::Tensor index, torch::Tensor weight, double scale) {
    TORCH_CHECK(table.is_contiguous() && table.numel() < (1 << 27), "embedding_bags: a table of a texture's size");
    index = index.contiguous();
    weight = weight.contiguous();
    const int bag_size = static_cast<int>(index.size(1)), features = static_cast<int>(table.size(1));
    auto y = at::empty({index.size(0), features}, table.options());
    if (y.numel() > 0) {
        bags<<<static_cast<unsigned>(index.size(0)), 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
            texture_of(table), index.data_ptr<int64_t>(), weight.data_ptr<float>(), y.data_ptr<float>(), bag_size,
            features, static_cast<float>(scale));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="bag_texture",
    cpp_sources=(
        "torch::Tensor embedding_bags(torch::Tensor table, torch::Tensor index, torch::Tensor weight, double scale);"
    ),
    cuda_sources=cuda_source,
    functions=["embedding_bags"],
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features, scale):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocabulary, features))
        self.scale = scale

    def forward(self, index, weight):
        return extension.embedding_bags(self.table.detach(), index, weight, self.scale)
