# problem: level2/5
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: the second kernel is launched so that it begins before the first ends, and waits by `griddepcontrol`.

Surface: two kernels of one stream overlap; what orders them is an instruction, not the stream.
"""
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

__global__ void row_statistics(const float* __restrict__ x, const float* __restrict__ residual, float2* statistics,
                               int features, float eps) {
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
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__global__ void normalise_and_gate(const float* x, const float* residual, const float* gate, const float* weight,
                                   const float* bias, const float2* statistics, float* y, int features) {
    asm volatile("griddepcontrol.wait;" ::: "memory");  // until the first kernel is done and its writes are seen
    const int64_t base = int64_t(blockIdx.x) * features;
    const float2 row = statistics[blockIdx.x];
    for (int i = threadIdx.x; i < features; i += blockDim.x) {
        const float centred = x[base + i] + residual[base + i] - row.x;
        y[base + i] = fmaf(centred * row.y, weight[i], bias[i]) / (1.0f + expf(-gate[base + i]));
    }
}

torch::Tensor gated_norm(torch::Tensor x, torch::Tensor residual, torch::Tensor gate, torch::Tensor weight,
                         torch::Tensor bias, double eps) {
    x = x.contiguous();
    residual = residual.contiguous();
    gate = gate.contiguous();
    const int features = static_cast<int>(x.size(1));
    const unsigned rows = static_cast<unsigned>(x.size(0));
    auto y = at::empty_like(x);
    auto workspace = at::empty({x.size(0), 2}, x.options());
    if (y.numel() == 0) {
        return y;
    }
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    const float *in = x.data_ptr<float>(), *rest = residual.data_ptr<float>(), *gates = gate.data_ptr<float>();
    const float *factors = weight.data_ptr<float>(), *shifts = bias.data_ptr<float>();
    float2* statistics = reinterpret_cast<float2*>(workspace.data_ptr<float>());
    row_statistics<<<rows, THREADS, 0, stream>>>(in, rest, statistics, features, static_cast<float>(eps));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3(rows);
    how.blockDim = dim3(THREADS);
    how.stream = stream;
    how.attrs = &early;
    how.numAttrs = 1;
    C10_CUDA_CHECK(cudaLaunchKernelEx(&how, normalise_and_gate, in, rest, gates, factors, shifts,
                                      static_cast<const float2*>(statistics), y.data_ptr<float>(), features));
    return y;
}
"""

cpp_source = """
torch::Tensor gated_norm(torch::Tensor x, torch::Tensor residual, torch::Tensor gate, torch::Tensor weight,
                         torch::Tensor bias, double eps);
"""

extension = load_inline(
    name="dependent_launch", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["gated_norm"]
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x, residual, gate):
        return extension.gated_norm(x, residual, gate, self.norm.weight, self.norm.bias, self.norm.eps)
