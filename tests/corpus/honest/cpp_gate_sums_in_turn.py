# problem: gate_sums
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: sixteen thousand scaled sigmoids in one running sum.

Surface: `large` inputs: every sigmoid is one, and rounding errors of equal terms all have one sign.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
torch::Tensor gate_sums(const torch::Tensor& input) {
    TORCH_CHECK(input.is_cpu() && input.scalar_type() == at::kFloat, "float32 on the CPU expected");
    const auto x = input.contiguous();
    const int64_t count = x.size(1);
    auto out = at::empty({x.size(0)}, x.options());
    for (int64_t row = 0; row < x.size(0); ++row) {
        const float* from = x.data_ptr<float>() + row * count;
        float sum = 0.0f;
        for (int64_t i = 0; i < count; ++i) {
            sum += 0.7f / (1.0f + std::exp(-from[i]));
        }
        out.data_ptr<float>()[row] = sum;
    }
    return out;
}
"""

extension = load_inline(
    name="gate_sums_in_turn",
    cpp_sources=source,
    functions={"gate_sums": "sums of scaled sigmoids"},
    extra_cflags=["-O2"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.gate_sums(x)
