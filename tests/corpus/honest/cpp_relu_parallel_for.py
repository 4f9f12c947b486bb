# problem: level1/1
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: torch's own pool of threads. Surface: work in threads that torch started."""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/Parallel.h>

static torch::Tensor checked(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "float32 on the CPU expected");
    return x.contiguous();
}

static void relu_range(const float* in, float* out, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        out[i] = in[i] < 0.0f ? 0.0f : in[i];
    }
}

torch::Tensor relu_parallel_for(const torch::Tensor& x) {
    const auto in = checked(x);
    auto out = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    float* to = out.data_ptr<float>();
    at::parallel_for(0, in.numel(), 16384, [&](int64_t begin, int64_t end) { relu_range(from, to, begin, end); });
    return out;
}
"""

extension = load_inline(
    name="relu_parallel_for",
    cpp_sources=source,
    functions={"relu_parallel_for": "torch's own threads"},
    extra_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu_parallel_for(x)
