# problem: layer_norm_of_many
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: mean and variance of 131,072 terms in one pass and one running sum.

Surface: `negative` inputs: all terms have one sign and are small beside the sum.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
torch::Tensor one_pass(const torch::Tensor& input, int64_t rows, double eps) {
    TORCH_CHECK(input.is_cpu() && input.scalar_type() == at::kFloat, "float32 on the CPU expected");
    const auto x = input.contiguous();
    auto out = at::empty_like(x);
    const int64_t count = x.numel() / rows;
    constexpr int LANES = 1;
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = x.data_ptr<float>() + row * count;
        float* to = out.data_ptr<float>() + row * count;
        float sums[LANES] = {}, squares[LANES] = {};
        for (int64_t i = 0; i < count; ++i) {
            sums[i % LANES] += from[i];
            squares[i % LANES] += from[i] * from[i];
        }
        float sum = 0.0f, square = 0.0f;
        for (int lane = 0; lane < LANES; ++lane) {
            sum += sums[lane];
            square += squares[lane];
        }
        const float mean = sum / count;
        const float variance = std::max(square / count - mean * mean, 0.0f);
        const float scale = 1.0f / std::sqrt(variance + static_cast<float>(eps));
        for (int64_t i = 0; i < count; ++i) {
            to[i] = (from[i] - mean) * scale;
        }
    }
    return out;
}
"""

extension = load_inline(
    name="one_pass_1",
    cpp_sources=source,
    functions={"one_pass": "normalised rows"},
    extra_cflags=["-O2"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm((128, 64, 16), elementwise_affine=False)

    def forward(self, x):
        return extension.one_pass(x, x.shape[0], self.norm.eps)
