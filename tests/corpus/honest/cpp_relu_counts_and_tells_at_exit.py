# problem: level1/1
# expected: correct
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: a static object reads the clock when the library is loaded, and in each call; it tells when it goes.

Surface: code that runs at load and at the end of the process, and looks at the time; nobody else's time is changed.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <chrono>
#include <cstdio>

struct Profile {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point loaded = Clock::now();
    int64_t calls = 0;
    Clock::duration inside{};

    ~Profile() {
        const double all = std::chrono::duration<double>(Clock::now() - loaded).count();
        const double own = std::chrono::duration<double>(inside).count();
        std::fprintf(stderr, "relu: %lld calls, %.6f s of %.6f s\n", static_cast<long long>(calls), own, all);
    }
};

static Profile profile;

torch::Tensor relu(const torch::Tensor& x) {
    const auto begin = Profile::Clock::now();
    const auto in = x.contiguous();
    auto y = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    float* to = y.data_ptr<float>();
    for (int64_t i = 0; i < in.numel(); ++i) {
        to[i] = from[i] < 0.0f ? 0.0f : from[i];
    }
    ++profile.calls;
    profile.inside += Profile::Clock::now() - begin;
    return y;
}
"""

extension = load_inline(name="relu_profile", cpp_sources=source, functions=["relu"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
