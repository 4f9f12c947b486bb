# problem: sorted_rows
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: a bitonic network in shared memory over values and places, padded to a power of two.

Surface: exchanges that look at the data's order in no way torch does; of equal values the earlier comes first.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__device__ bool after(float a, int i, float b, int j) {
    return a > b || (a == b && i > j);
}

__global__ void sort_rows(const float* __restrict__ x, float* __restrict__ values, int64_t* __restrict__ places,
                          int columns, int padded) {
    extern __shared__ float keys[];
    int* from = reinterpret_cast<int*>(keys + padded);
    const int64_t base = int64_t(blockIdx.x) * columns;
    for (int i = threadIdx.x; i < padded; i += blockDim.x) {
        keys[i] = i < columns ? x[base + i] : INFINITY;
        from[i] = i;
    }
    for (int size = 2; size <= padded; size *= 2) {
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < padded; i += blockDim.x) {
                const int other = i ^ step;
                if (other > i && after(keys[i], from[i], keys[other], from[other]) == ((i & size) == 0)) {
                    const float key = keys[i];
                    keys[i] = keys[other];
                    keys[other] = key;
                    const int place = from[i];
                    from[i] = from[other];
                    from[other] = place;
                }
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        values[base + i] = keys[i];
        places[base + i] = from[i];
    }
}

std::vector<torch::Tensor> sort_rows_of(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.dim() == 2 && x.scalar_type() == at::kFloat, "sort_rows_of: a float32 matrix");
    x = x.contiguous();
    const int columns = static_cast<int>(x.size(1));
    auto values = at::empty_like(x), places = at::empty(x.sizes(), x.options().dtype(at::kLong));
    int padded = 1;
    while (padded < columns) {
        padded *= 2;
    }
    TORCH_CHECK(padded <= 4096, "sort_rows_of: rows have to fit into shared memory");
    if (x.numel() > 0) {
        sort_rows<<<static_cast<unsigned>(x.size(0)), 512, padded * 8, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), values.data_ptr<float>(), places.data_ptr<int64_t>(), columns, padded);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return {values, places};
}
"""

extension = load_inline(
    name="sorted_bitonic",
    cpp_sources="std::vector<torch::Tensor> sort_rows_of(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["sort_rows_of"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = extension.sort_rows_of(x)
        return values, places
