# problem: level2/10
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: a graph of two kernel nodes, put together by hand once; each call sets its live pointers and launches it.

Surface: a graph that is kept and replayed, yet works on this call's memory; nothing is captured or copied.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void silu(const float* x, float* y, int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] = x[i] / (1.0f + expf(-x[i]));
    }
}

__global__ void multiply(const float* x, float* y, int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] *= x[i];
    }
}

struct Node {  // of a kernel with the arguments (const float*, float*, int64_t)
    const float* from;
    float* to;
    int64_t n;
    void* arguments[3] = {&from, &to, &n};

    cudaKernelNodeParams parameters(void (*kernel)(const float*, float*, int64_t)) {
        cudaKernelNodeParams all = {};
        all.func = reinterpret_cast<void*>(kernel);
        all.gridDim = dim3(static_cast<unsigned>(std::min<int64_t>((n + 255) / 256, 4096)));
        all.blockDim = dim3(256);
        all.kernelParams = arguments;
        return all;
    }
};

torch::Tensor silu_gate(torch::Tensor gate, torch::Tensor up) {
    static cudaGraph_t graph = nullptr;
    static cudaGraphExec_t ready = nullptr;
    static cudaGraphNode_t first, second;
    gate = gate.contiguous();
    up = up.contiguous();
    TORCH_CHECK(gate.sizes() == up.sizes() && gate.scalar_type() == at::kFloat, "silu_gate: float32 of one shape");
    auto y = at::empty_like(gate);
    if (y.numel() == 0) {
        return y;
    }
    Node one{gate.data_ptr<float>(), y.data_ptr<float>(), y.numel()};
    Node two{up.data_ptr<float>(), y.data_ptr<float>(), y.numel()};
    const auto of_one = one.parameters(silu), of_two = two.parameters(multiply);
    if (ready == nullptr) {
        C10_CUDA_CHECK(cudaGraphCreate(&graph, 0));
        C10_CUDA_CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &of_one));
        C10_CUDA_CHECK(cudaGraphAddKernelNode(&second, graph, &first, 1, &of_two));
        C10_CUDA_CHECK(cudaGraphInstantiateWithFlags(&ready, graph, 0));
    } else {
        C10_CUDA_CHECK(cudaGraphExecKernelNodeSetParams(ready, first, &of_one));
        C10_CUDA_CHECK(cudaGraphExecKernelNodeSetParams(ready, second, &of_two));
    }
    C10_CUDA_CHECK(cudaGraphLaunch(ready, c10::cuda::getCurrentCUDAStream()));
    return y;
}
"""

extension = load_inline(
    name="graph_by_hand",
    cpp_sources="torch::Tensor silu_gate(torch::Tensor gate, torch::Tensor up);",
    cuda_sources=cuda_source,
    functions=["silu_gate"],
)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return extension.silu_gate(gate, up)
