# problem: long_row_sums
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: a million float32 terms, one after another. Surface: the largest honest error."""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""


static torch::Tensor checked(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "float32 on the CPU expected");
    return x.contiguous();
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
"""

extension = load_inline(
    name="sums_in_turn",
    cpp_sources=source,
    functions={"sums_in_turn": "one term after another"},
    extra_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.sums_in_turn(x)
