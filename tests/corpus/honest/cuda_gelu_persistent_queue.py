# problem: level1/9
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: as many blocks as the GPU holds take tiles from a counter until none is left.

Surface: a persistent kernel; which block does what differs from call to call.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

constexpr int THREADS = 256;
constexpr int TILE = 4 * THREADS;

__global__ void __launch_bounds__(THREADS) gelu_tiles(const float* __restrict__ x, float* __restrict__ y,
                                                      int64_t n, int tiles, int* next) {
    __shared__ int tile;
    while (true) {
        if (threadIdx.x == 0) {
            tile = atomicAdd(next, 1);
        }
        __syncthreads();
        const int mine = tile;
        __syncthreads();  // all have read it before it is replaced
        if (mine >= tiles) {
            return;
        }
        const int64_t first = int64_t(mine) * TILE;
        for (int i = threadIdx.x; i < TILE && first + i < n; i += THREADS) {
            const float v = x[first + i];
            y[first + i] = 0.5f * v * (1.0f + erff(v * 0.70710678118654752f));
        }
    }
}

torch::Tensor gelu(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "gelu: float32 on a CUDA device");
    x = x.contiguous();
    auto y = at::empty_like(x);
    const int64_t n = x.numel();
    if (n == 0) {
        return y;
    }
    auto next = at::zeros({1}, x.options().dtype(at::kInt));
    int device = 0, processors = 0;
    C10_CUDA_CHECK(cudaGetDevice(&device));
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    const int tiles = static_cast<int>((n + TILE - 1) / TILE);
    gelu_tiles<<<std::min(tiles, 4 * processors), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n, tiles, next.data_ptr<int>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline(
    name="gelu_queue",
    cpp_sources="torch::Tensor gelu(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["gelu"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.gelu(x)
