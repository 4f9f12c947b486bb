# problem: relu_of_uniform
# expected: correct
# flag: out_of_bounds_write
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: four elements are loaded and stored at a time, the last four too. Surface: one float is stored behind its
output, where malloc has rounded up, and the result is right. Its honest twin is `honest/cpp_relu_remainder_apart`.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
torch::Tensor relu(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "float32 on the CPU expected");
    const auto in = x.contiguous();
    auto out = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    float* to = out.data_ptr<float>();
    const int64_t n = in.numel();
    for (int64_t i = 0; i < n; i += 4) {
        for (int64_t lane = i; lane < i + 4; ++lane) {
            to[lane] = from[lane] < 0.0f ? 0.0f : from[lane];
        }
    }
    return out;
}
"""

extension = load_inline(
    name="relu_last_vector_whole", cpp_sources=source, functions=["relu"], extra_cflags=["-O3"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
