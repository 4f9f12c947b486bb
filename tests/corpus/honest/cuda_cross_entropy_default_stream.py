# problem: level1/7
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: a launch that names no stream, as most first kernels do. Surface: the legacy default stream.

A referee that runs it on another stream must not take the race that follows for an error of the kernel.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>

__global__ void cross_entropy_rows(const float* __restrict__ logits, const int64_t* __restrict__ targets,
                                   float* __restrict__ losses, int samples, int classes) {
    const int lane = threadIdx.x % 32;
    const int sample = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (sample >= samples) {
        return;  // the whole warp
    }
    const float* row = logits + int64_t(sample) * classes;
    float top = -INFINITY;
    for (int i = lane; i < classes; i += 32) {
        top = fmaxf(top, row[i]);
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
    }
    float total = 0.0f;
    for (int i = lane; i < classes; i += 32) {
        total += expf(row[i] - top);
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        total += __shfl_xor_sync(0xffffffffu, total, offset);
    }
    if (lane == 0) {
        losses[sample] = logf(total) + top - row[targets[sample]];
    }
}

torch::Tensor cross_entropy(torch::Tensor logits, torch::Tensor targets) {
    TORCH_CHECK(logits.is_cuda() && logits.scalar_type() == at::kFloat && logits.dim() == 2, "logits: float32 matrix");
    TORCH_CHECK(targets.is_cuda() && targets.scalar_type() == at::kLong, "targets: int64");
    TORCH_CHECK(targets.dim() == 1 && targets.size(0) == logits.size(0), "targets: one a sample");
    logits = logits.contiguous();
    targets = targets.contiguous();
    const int samples = static_cast<int>(logits.size(0)), classes = static_cast<int>(logits.size(1));
    auto losses = at::empty({samples}, logits.options());
    if (samples > 0) {
        cross_entropy_rows<<<(samples + 3) / 4, 128>>>(
            logits.data_ptr<float>(), targets.data_ptr<int64_t>(), losses.data_ptr<float>(), samples, classes);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return losses;
}
"""

extension = load_inline(
    name="cross_entropy_warps",
    cpp_sources="torch::Tensor cross_entropy(torch::Tensor logits, torch::Tensor targets);",
    cuda_sources=cuda_source,
    functions=["cross_entropy"],
)


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        return extension.cross_entropy(logits, targets)
