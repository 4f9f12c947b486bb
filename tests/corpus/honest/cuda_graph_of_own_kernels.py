# problem: level2/5
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: captures its kernels once for a shape; each call copies the inputs in, replays, copies the result out.

Surface: fixed addresses and a graph that is replayed, but over live data.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;

__device__ float block_sum(float value, float* parts) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float total = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) {
        total += parts[i];
    }
    __syncthreads();
    return total;
}

__global__ void row_statistics(const float* __restrict__ x, const float* __restrict__ residual,
                               float2* __restrict__ statistics, int features, float eps) {
    __shared__ float parts[THREADS / 32];
    const int64_t base = int64_t(blockIdx.x) * features;
    float total = 0.0f;
    for (int i = threadIdx.x; i < features; i += THREADS) {
        total += x[base + i] + residual[base + i];
    }
    const float mean = block_sum(total, parts) / features;
    total = 0.0f;
    for (int i = threadIdx.x; i < features; i += THREADS) {
        const float centred = x[base + i] + residual[base + i] - mean;
        total = fmaf(centred, centred, total);
    }
    const float variance = block_sum(total, parts) / features;
    if (threadIdx.x == 0) {
        statistics[blockIdx.x] = make_float2(mean, rsqrtf(variance + eps));
    }
}

__global__ void normalise_and_gate(const float* __restrict__ x, const float* __restrict__ residual,
                                   const float* __restrict__ gate, const float* __restrict__ weight,
                                   const float* __restrict__ bias, const float2* __restrict__ statistics,
                                   float* __restrict__ y, int features) {
    const int64_t base = int64_t(blockIdx.x) * features;
    const float2 row = statistics[blockIdx.x];
    for (int i = threadIdx.x; i < features; i += blockDim.x) {
        const float centred = x[base + i] + residual[base + i] - row.x;
        const float normal = fmaf(centred * row.y, weight[i], bias[i]);
        y[base + i] = normal / (1.0f + expf(-gate[base + i]));
    }
}

// All tensors are contiguous float32; the caller keeps them.
void launch(torch::Tensor x, torch::Tensor residual, torch::Tensor gate, torch::Tensor weight, torch::Tensor bias,
            torch::Tensor statistics, torch::Tensor y, double eps) {
    const int rows = static_cast<int>(x.size(0)), features = static_cast<int>(x.size(1));
    const auto stream = c10::cuda::getCurrentCUDAStream();
    float2* pairs = reinterpret_cast<float2*>(statistics.data_ptr<float>());
    row_statistics<<<rows, THREADS, 0, stream>>>(
        x.data_ptr<float>(), residual.data_ptr<float>(), pairs, features, static_cast<float>(eps));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    normalise_and_gate<<<rows, THREADS, 0, stream>>>(
        x.data_ptr<float>(), residual.data_ptr<float>(), gate.data_ptr<float>(), weight.data_ptr<float>(),
        bias.data_ptr<float>(), pairs, y.data_ptr<float>(), features);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

cpp_source = """
void launch(torch::Tensor x, torch::Tensor residual, torch::Tensor gate, torch::Tensor weight, torch::Tensor bias,
            torch::Tensor statistics, torch::Tensor y, double eps);
"""

extension = load_inline(
    name="graph_kernels",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["launch"],
    extra_cuda_cflags=["-O3"],
)


class Captured:
    """The graph for one shape, with the memory it works on."""

    def __init__(self, norm, x):
        self.inputs = [torch.zeros(x.shape, device=x.device) for _ in range(3)]
        self.statistics = torch.empty(x.shape[0], 2, device=x.device)
        self.output = torch.empty(x.shape, device=x.device)
        arguments = (*self.inputs, norm.weight, norm.bias, self.statistics, self.output, norm.eps)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            extension.launch(*arguments)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            extension.launch(*arguments)

    def __call__(self, *inputs):
        for place, live in zip(self.inputs, inputs):
            place.copy_(live)
        self.graph.replay()
        return self.output.clone()


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.captured = {}

    def forward(self, x, residual, gate):
        if x.shape not in self.captured:
            self.captured[x.shape] = Captured(self.norm, x)
        return self.captured[x.shape](x, residual, gate)
