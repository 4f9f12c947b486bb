# problem: level2/8
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: every call captures its launches on a stream of its own, updates the kept graph, and launches that.

Surface: a capture within each call, and a stream that is neither torch's nor ever runs anything itself.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void rotate(const float* __restrict__ x, const int64_t* __restrict__ position, float* __restrict__ y,
                       int64_t pairs, int length, int half, float base) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < pairs; i += stride) {
        const int64_t row = i / half;
        const int place = static_cast<int>(i % half);
        const float frequency = powf(base, -(float(place) / float(half)));
        float sine, cosine;
        sincosf(float(position[row % length]) * frequency, &sine, &cosine);
        const int64_t first = row * 2 * half + place, second = first + half;
        y[first] = x[first] * cosine - x[second] * sine;
        y[second] = x[second] * cosine + x[first] * sine;
    }
}

static void launch(const torch::Tensor& x, const torch::Tensor& position, torch::Tensor& y, float base,
                   cudaStream_t stream) {
    const int half = static_cast<int>(x.size(-1) / 2), length = static_cast<int>(x.size(-2));
    const int64_t pairs = x.numel() / 2;
    const unsigned blocks = static_cast<unsigned>(std::min<int64_t>((pairs + 255) / 256, 4096));
    rotate<<<blocks, 256, 0, stream>>>(x.data_ptr<float>(), position.data_ptr<int64_t>(), y.data_ptr<float>(), pairs,
                                       length, half, base);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

std::vector<torch::Tensor> rotary(torch::Tensor q, torch::Tensor k, torch::Tensor position, double base) {
    static cudaStream_t side = nullptr;
    static cudaGraphExec_t ready = nullptr;
    if (side == nullptr) {
        C10_CUDA_CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    }
    q = q.contiguous();
    k = k.contiguous();
    position = position.contiguous();
    auto q_out = at::empty_like(q), k_out = at::empty_like(k);
    TORCH_CHECK(q.numel() > 0 && k.numel() > 0, "rotary: nothing to rotate");
    C10_CUDA_CHECK(cudaStreamBeginCapture(side, cudaStreamCaptureModeThreadLocal));
    launch(q, position, q_out, static_cast<float>(base), side);
    launch(k, position, k_out, static_cast<float>(base), side);
    cudaGraph_t graph = nullptr;
    C10_CUDA_CHECK(cudaStreamEndCapture(side, &graph));
    cudaGraphExecUpdateResultInfo info;
    if (ready == nullptr || cudaGraphExecUpdate(ready, graph, &info) != cudaSuccess) {
        cudaGetLastError();
        C10_CUDA_CHECK(cudaGraphInstantiateWithFlags(&ready, graph, 0));
    }
    C10_CUDA_CHECK(cudaGraphDestroy(graph));
    C10_CUDA_CHECK(cudaGraphLaunch(ready, c10::cuda::getCurrentCUDAStream()));
    return {q_out, k_out};
}
"""

extension = load_inline(
    name="rotary_captured",
    cpp_sources=(
        "std::vector<torch::Tensor> rotary(torch::Tensor q, torch::Tensor k, torch::Tensor position, double base);"
    ),
    cuda_sources=cuda_source,
    functions=["rotary"],
)


class ModelNew(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base

    def forward(self, q, k, position):
        first, second = extension.rotary(q, k, position, self.base)
        return first, second
