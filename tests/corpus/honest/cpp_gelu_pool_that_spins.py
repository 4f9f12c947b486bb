# problem: level1/9
# expected: correct
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: two threads in C++ live from the first call on and look all the time whether there is work.

Surface: they look between calls too, and the loop waits for its one core meanwhile.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

class Pool {
public:
    static constexpr int WORKERS = 2;

    void run(std::function<void(int)> share) {
        share_ = std::move(share);
        left_ = WORKERS;
        ++round_;
        while (left_ != 0) {
        }
    }

    Pool() {
        for (int i = 0; i < WORKERS; ++i) {
            std::thread([this, i] { serve(i); }).detach();
        }
    }

private:
    void serve(int index) {
        for (int64_t seen = 0;; ++seen) {
            while (round_ == seen) {
            }
            share_(index);
            --left_;
        }
    }

    std::function<void(int)> share_;
    std::atomic<int64_t> round_{0};
    std::atomic<int> left_{0};
};

torch::Tensor gelu(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "float32 on the CPU expected");
    static Pool* const pool = new Pool;  // never destroyed: its threads look until the process ends
    const auto in = x.contiguous();
    auto y = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    float* to = y.data_ptr<float>();
    const int64_t n = in.numel();
    pool->run([=](int index) {
        for (int64_t i = n * index / Pool::WORKERS; i < n * (index + 1) / Pool::WORKERS; ++i) {
            to[i] = 0.5f * from[i] * std::erfc(-0.70710678f * from[i]);
        }
    });
    return y;
}
"""

extension = load_inline(name="gelu_spins", cpp_sources=source, functions=["gelu"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.gelu(x)
