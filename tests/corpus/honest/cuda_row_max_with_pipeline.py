# problem: level2/6
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: `cuda::pipeline` with two stages: a warp copies its next row while it looks at the present one.

Surface: libcu++ objects in shared memory; copies complete when a later statement waits for them.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda/pipeline>

#include <algorithm>

constexpr int WARPS = 8, STAGES = 2;

__global__ void __launch_bounds__(WARPS * 32) row_max(const float* __restrict__ x, float* __restrict__ y,
                                                      int64_t rows, int columns, float scale, float bound) {
    extern __shared__ float room[];
    const int lane = threadIdx.x % 32;
    float* const mine = room + threadIdx.x / 32 * STAGES * columns;
    const int64_t stride = int64_t(gridDim.x) * WARPS;
    auto pipeline = cuda::make_pipeline();
    int64_t ahead = int64_t(blockIdx.x) * WARPS + threadIdx.x / 32;
    int64_t row = ahead;
    for (int turn = 0; row < rows; row += stride, turn ^= 1) {
        for (; ahead < rows && ahead <= row + stride; ahead += stride) {
            const int place = static_cast<int>((ahead - row) / stride) ^ turn;
            pipeline.producer_acquire();
            for (int i = lane; i < columns; i += 32) {
                cuda::memcpy_async(mine + place * columns + i, x + ahead * columns + i, sizeof(float), pipeline);
            }
            pipeline.producer_commit();
        }
        if (row + stride < rows) {
            cuda::pipeline_consumer_wait_prior<1>(pipeline);
        } else {
            cuda::pipeline_consumer_wait_prior<0>(pipeline);
        }
        float largest = -bound;
        for (int i = lane; i < columns; i += 32) {  // each lane reads what it copied itself
            largest = fmaxf(largest, fminf(fmaxf(mine[turn * columns + i] * scale, -bound), bound));
        }
        pipeline.consumer_release();
        for (int offset = 16; offset > 0; offset >>= 1) {
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
        }
        if (lane == 0) {
            y[row] = largest;
        }
    }
}

torch::Tensor clamped_max(torch::Tensor x, double scale, double bound) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 2, "clamped_max: a float32 matrix");
    x = x.contiguous();
    const int64_t rows = x.size(0);
    const int columns = static_cast<int>(x.size(1)), bytes = WARPS * STAGES * columns * static_cast<int>(sizeof(float));
    C10_CUDA_CHECK(cudaFuncSetAttribute(row_max, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    auto y = at::empty({rows}, x.options());
    if (rows > 0) {
        const unsigned blocks = static_cast<unsigned>(std::min<int64_t>((rows + WARPS - 1) / WARPS, 2112));
        row_max<<<blocks, WARPS * 32, bytes, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), y.data_ptr<float>(), rows, columns, static_cast<float>(scale),
            static_cast<float>(bound));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="row_max_pipeline",
    cpp_sources="torch::Tensor clamped_max(torch::Tensor x, double scale, double bound);",
    cuda_sources=cuda_source,
    functions=["clamped_max"],
)


class ModelNew(nn.Module):
    def __init__(self, scale, bound):
        super().__init__()
        self.scale, self.bound = scale, bound

    def forward(self, x):
        return extension.clamped_max(x, self.scale, self.bound)
