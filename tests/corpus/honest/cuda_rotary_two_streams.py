# problem: level2/8
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: queries on the current stream, keys on a second one that waits before and is waited for after.

Surface: a side stream, properly joined by events.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <tuple>

__global__ void rotate(const float* __restrict__ x, const int64_t* __restrict__ position, float* __restrict__ y,
                       int64_t pairs, int length, int half, float base) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < pairs; i += stride) {
        const int place = static_cast<int>(i % half);
        const int64_t row = i / half;
        const float exponent = float(place) / float(half);
        const float angle = float(position[row % length]) * powf(base, -exponent);
        float sine, cosine;
        sincosf(angle, &sine, &cosine);
        const float first = x[row * 2 * half + place], second = x[row * 2 * half + half + place];
        y[row * 2 * half + place] = first * cosine - second * sine;
        y[row * 2 * half + half + place] = second * cosine + first * sine;
    }
}

static void launch(const torch::Tensor& x, const torch::Tensor& position, torch::Tensor& y, double base,
                   cudaStream_t stream) {
    const int64_t pairs = x.numel() / 2;
    if (pairs == 0) {
        return;
    }
    const int blocks = static_cast<int>(std::min<int64_t>((pairs + 255) / 256, 2048));
    rotate<<<blocks, 256, 0, stream>>>(
        x.data_ptr<float>(), position.data_ptr<int64_t>(), y.data_ptr<float>(), pairs,
        static_cast<int>(x.size(-2)), static_cast<int>(x.size(-1) / 2), static_cast<float>(base));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

std::tuple<torch::Tensor, torch::Tensor> rotate_both(torch::Tensor q, torch::Tensor k, torch::Tensor position,
                                                     double base) {
    TORCH_CHECK(q.is_cuda() && k.is_cuda() && position.is_cuda(), "rotate_both: CUDA tensors");
    TORCH_CHECK(q.scalar_type() == at::kFloat && k.scalar_type() == at::kFloat, "rotate_both: float32 only");
    TORCH_CHECK(q.size(-1) % 2 == 0 && k.sizes() == q.sizes(), "rotate_both: shapes");
    TORCH_CHECK(position.scalar_type() == at::kLong && position.numel() == q.size(-2), "rotate_both: positions");
    q = q.contiguous();
    k = k.contiguous();
    position = position.contiguous();
    auto q_out = at::empty_like(q), k_out = at::empty_like(k);
    const cudaStream_t main = c10::cuda::getCurrentCUDAStream();
    const cudaStream_t side = c10::cuda::getStreamFromPool();
    cudaEvent_t ready, done;
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    C10_CUDA_CHECK(cudaEventRecord(ready, main));
    C10_CUDA_CHECK(cudaStreamWaitEvent(side, ready, 0));
    launch(k, position, k_out, base, side);
    launch(q, position, q_out, base, main);
    C10_CUDA_CHECK(cudaEventRecord(done, side));
    C10_CUDA_CHECK(cudaStreamWaitEvent(main, done, 0));  // so all memory may be freed on the main stream
    C10_CUDA_CHECK(cudaEventDestroy(ready));
    C10_CUDA_CHECK(cudaEventDestroy(done));
    return {q_out, k_out};
}
"""

extension = load_inline(
    name="rotary_two_streams",
    cpp_sources="""
#include <tuple>
std::tuple<torch::Tensor, torch::Tensor> rotate_both(torch::Tensor q, torch::Tensor k, torch::Tensor position,
                                                     double base);
""",
    cuda_sources=cuda_source,
    functions=["rotate_both"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base

    def forward(self, q, k, position):
        return extension.rotate_both(q, k, position, self.base)
