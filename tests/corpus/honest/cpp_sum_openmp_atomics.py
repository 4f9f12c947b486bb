# problem: level1/10
# expected: correct
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: OpenMP threads add partial sums with atomics. Surface: the last bits differ from call to call."""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <algorithm>
#include <vector>

static torch::Tensor checked(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "float32 on the CPU expected");
    return x.contiguous();
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
"""

extension = load_inline(
    name="sums_by_atomics",
    cpp_sources=source,
    functions={"sums_by_atomics": "in no order"},
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
