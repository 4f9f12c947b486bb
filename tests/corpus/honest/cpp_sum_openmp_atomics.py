# problem: level1/10
# expected: correct
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: OpenMP threads add partial sums with atomics. Surface: the last bits differ from call to call."""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
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

torch::Tensor relu_parallel_for(const torch::Tensor& x) {
    const auto in = checked(x);
    auto out = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    float* to = out.data_ptr<float>();
    at::parallel_for(0, in.numel(), 16384, [&](int64_t begin, int64_t end) { relu_range(from, to, begin, end); });
    return out;
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

torch::Tensor sums_in_turn(const torch::Tensor& x) {
    const auto in = checked(x);
    TORCH_CHECK(in.dim() == 2, "a matrix expected");
    auto out = at::empty({in.size(0)}, in.options());
    for (int64_t row = 0; row < in.size(0); ++row) {
        const float* from = in.data_ptr<float>() + row * in.size(1);
        float total = 0.0f;
        for (int64_t i = 0; i < in.size(1); ++i) {
            total += from[i];
        }
        out.data_ptr<float>()[row] = total;
    }
    return out;
}

torch::Tensor sums_by_atomics(const torch::Tensor& x) {
    const auto in = checked(x);
    TORCH_CHECK(in.dim() == 3, "three dimensions expected");
    const int64_t batch = in.size(0), rows = in.size(1), columns = in.size(2);
    auto out = at::zeros({batch, 1, columns}, in.options());
    const float* from = in.data_ptr<float>();
    float* to = out.data_ptr<float>();
    constexpr int64_t slab = 32;
    const int64_t slabs = (rows + slab - 1) / slab;
#pragma omp parallel for num_threads(3) schedule(dynamic)
    for (int64_t place = 0; place < batch * slabs; ++place) {
        const int64_t sample = place / slabs, first = place % slabs * slab;
        std::vector<float> total(columns, 0.0f);
        for (int64_t row = first; row < std::min(rows, first + slab); ++row) {
            for (int64_t i = 0; i < columns; ++i) {
                total[i] += from[(sample * rows + row) * columns + i];
            }
        }
        for (int64_t i = 0; i < columns; ++i) {
#pragma omp atomic
            to[sample * columns + i] += total[i];
        }
    }
    return out;
}

torch::Tensor gelu(const torch::Tensor& x) {
    const auto in = checked(x);
    auto out = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    float* to = out.data_ptr<float>();
#pragma omp parallel for num_threads(2) schedule(static)
    for (int64_t i = 0; i < in.numel(); ++i) {
        to[i] = 0.5f * from[i] * (1.0f + std::erf(from[i] * 0.70710678f));
    }
    return out;
}
"""

extension = load_inline(
    name="kernels_of_the_processor",
    cpp_sources=source,
    functions={
        "relu_parallel_for": "torch's own threads",
        "relu_threads": "threads that are joined",
        "sums_in_turn": "one term after another",
        "sums_by_atomics": "in no order",
        "gelu": "with erf",
    },
    extra_cflags=["-O3", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        if dim != 1:
            raise ValueError(f"made for dimension 1, not {dim}")

    def forward(self, x):
        return extension.sums_by_atomics(x)
