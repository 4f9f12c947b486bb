# problem: top_values
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: finds the largest element again and again; of equal ones it takes the last.

Surface: indices unlike torch's among ties, where torch leaves the choice open.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <tuple>

struct Best {
    float value;
    int index;  // -1: none
};

__device__ __forceinline__ Best better(Best a, Best b) {
    if (a.index < 0 || b.index < 0) {
        return a.index < 0 ? b : a;
    }
    if (a.value != b.value) {
        return a.value > b.value ? a : b;
    }
    return a.index > b.index ? a : b;
}

// One warp a row. What is left are the elements after the last one taken, in the order of (value, index).
__global__ void top_rows(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ indices,
                         int columns, int k) {
    const int lane = threadIdx.x;
    const float* row = x + int64_t(blockIdx.x) * columns;
    Best last = {INFINITY, columns};
    for (int place = 0; place < k; ++place) {
        Best best = {0.0f, -1};
        for (int i = lane; i < columns; i += 32) {
            const float v = row[i];
            if (v < last.value || (v == last.value && i < last.index)) {
                best = better(best, {v, i});
            }
        }
        for (int offset = 16; offset > 0; offset >>= 1) {
            const Best other = {__shfl_xor_sync(0xffffffffu, best.value, offset),
                                __shfl_xor_sync(0xffffffffu, best.index, offset)};
            best = better(best, other);
        }
        if (lane == 0) {
            values[int64_t(blockIdx.x) * k + place] = best.value;
            indices[int64_t(blockIdx.x) * k + place] = best.index;
        }
        last = best;
    }
}

std::tuple<torch::Tensor, torch::Tensor> top_values(torch::Tensor x, int64_t k) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 2, "top_values: a float32 matrix");
    TORCH_CHECK(k > 0 && k <= x.size(1), "top_values: too many asked for");
    x = x.contiguous();
    auto values = at::empty({x.size(0), k}, x.options());
    auto indices = at::empty({x.size(0), k}, x.options().dtype(at::kLong));
    if (x.size(0) > 0) {
        top_rows<<<static_cast<unsigned>(x.size(0)), 32, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), values.data_ptr<float>(), indices.data_ptr<int64_t>(),
            static_cast<int>(x.size(1)), static_cast<int>(k));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return {values, indices};
}
"""

cpp_source = """
#include <tuple>
std::tuple<torch::Tensor, torch::Tensor> top_values(torch::Tensor x, int64_t k);
"""

extension = load_inline(
    name="top_values", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["top_values"]
)


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        return extension.top_values(x, self.k)
