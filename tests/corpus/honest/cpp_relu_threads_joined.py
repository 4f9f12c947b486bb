# problem: level1/1
# expected: correct
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: three threads in each call, joined before it returns. Surface: threads of its own."""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <algorithm>
#include <thread>
#include <vector>

static torch::Tensor checked(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "float32 on the CPU expected");
    return x.contiguous();
}

static void relu_range(const float* in, float* out, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        out[i] = in[i] < 0.0f ? 0.0f : in[i];
    }
}

torch::Tensor relu_threads(const torch::Tensor& x) {
    const auto in = checked(x);
    auto out = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    float* to = out.data_ptr<float>();
    const int64_t share = (in.numel() + 2) / 3;
    std::vector<std::thread> threads;
    for (int64_t begin = 0; begin < in.numel(); begin += share) {
        threads.emplace_back(relu_range, from, to, begin, std::min(in.numel(), begin + share));
    }
    for (auto& thread : threads) {
        thread.join();
    }
    return out;
}
"""

extension = load_inline(
    name="relu_threads",
    cpp_sources=source,
    functions={"relu_threads": "threads that are joined"},
    extra_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu_threads(x)
