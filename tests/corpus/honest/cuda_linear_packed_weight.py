# problem: level2/4
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: packs the weight (transposed, padded to whole tiles) in the first call and keeps it.

Surface: the first call does work that later ones do not; a cache of weights in device memory.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int TILE = 32;
constexpr int ROWS = 8;

static int64_t padded(int64_t n) { return (n + TILE - 1) / TILE * TILE; }

__global__ void pack_weight(const float* __restrict__ weight, float* __restrict__ packed, int out, int in,
                            int pitch) {
    const int column = blockIdx.x * TILE + threadIdx.x;  // an output feature
    const int row = blockIdx.y * ROWS + threadIdx.y;  // an input feature
    packed[int64_t(row) * pitch + column] = row < in && column < out ? weight[int64_t(column) * in + row] : 0.0f;
}

__global__ void linear_relu_add(const float* __restrict__ x, const float* __restrict__ packed,
                                const float* __restrict__ bias, const float* __restrict__ residual,
                                float* __restrict__ y, int batch, int in, int out, int pitch) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const int column = blockIdx.x * TILE + threadIdx.x;
    const int first_row = blockIdx.y * TILE;
    float sums[TILE / ROWS] = {};
    for (int start = 0; start < in; start += TILE) {
        for (int i = threadIdx.y; i < TILE; i += ROWS) {
            const int row = first_row + i, inner = start + threadIdx.x;
            left[i][threadIdx.x] = row < batch && inner < in ? x[int64_t(row) * in + inner] : 0.0f;
            right[i][threadIdx.x] = packed[int64_t(start + i) * pitch + column];
        }
        __syncthreads();
        for (int inner = 0; inner < TILE; ++inner) {
            const float factor = right[inner][threadIdx.x];
#pragma unroll
            for (int i = 0; i < TILE / ROWS; ++i) {
                sums[i] = fmaf(left[threadIdx.y + i * ROWS][inner], factor, sums[i]);
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < TILE / ROWS; ++i) {
        const int row = first_row + threadIdx.y + i * ROWS;
        if (row < batch && column < out) {
            const int64_t place = int64_t(row) * out + column;
            y[place] = fmaxf(sums[i] + bias[column], 0.0f) + residual[place];
        }
    }
}

torch::Tensor pack(torch::Tensor weight) {
    TORCH_CHECK(weight.is_cuda() && weight.scalar_type() == at::kFloat && weight.is_contiguous(), "pack: weight");
    const int out = static_cast<int>(weight.size(0)), in = static_cast<int>(weight.size(1));
    auto packed = at::empty({padded(in), padded(out)}, weight.options());
    const int pitch = static_cast<int>(packed.size(1));
    const dim3 grid(pitch / TILE, static_cast<unsigned>(packed.size(0) / ROWS));
    pack_weight<<<grid, dim3(TILE, ROWS), 0, c10::cuda::getCurrentCUDAStream()>>>(
        weight.data_ptr<float>(), packed.data_ptr<float>(), out, in, pitch);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return packed;
}

torch::Tensor forward(torch::Tensor x, torch::Tensor packed, torch::Tensor bias, torch::Tensor residual) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 2, "forward: a float32 matrix");
    x = x.contiguous();
    residual = residual.contiguous();
    const int batch = static_cast<int>(x.size(0)), in = static_cast<int>(x.size(1));
    const int out = static_cast<int>(bias.size(0));
    TORCH_CHECK(packed.size(0) == padded(in) && packed.size(1) == padded(out), "forward: the packed weight");
    TORCH_CHECK(residual.size(0) == batch && residual.size(1) == out, "forward: the residual");
    auto y = at::empty({batch, out}, x.options());
    if (batch > 0) {
        const dim3 grid((out + TILE - 1) / TILE, (batch + TILE - 1) / TILE);
        linear_relu_add<<<grid, dim3(TILE, ROWS), 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), packed.data_ptr<float>(), bias.data_ptr<float>(), residual.data_ptr<float>(),
            y.data_ptr<float>(), batch, in, out, static_cast<int>(packed.size(1)));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="linear_packed",
    cpp_sources="""
torch::Tensor pack(torch::Tensor weight);
torch::Tensor forward(torch::Tensor x, torch::Tensor packed, torch::Tensor bias, torch::Tensor residual);
""",
    cuda_sources=cuda_source,
    functions={"pack": "the weight, transposed and padded", "forward": "relu(x W + b) + residual"},
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.packed = None

    def forward(self, x, residual):
        if self.packed is None:
            self.packed = extension.pack(self.linear.weight)
        return extension.forward(x, self.packed, self.linear.bias, residual)
