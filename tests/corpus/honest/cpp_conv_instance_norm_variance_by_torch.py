# problem: conv_instance_norm
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: torch makes the mean and variance of each channel; the kernel makes every element of the result.

Surface: `own_kernel`. A variance is arithmetic on all elements too, but it is not the norm's result.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
torch::Tensor scaled(const torch::Tensor& input, const torch::Tensor& variances, const torch::Tensor& means,
                     double eps) {
    TORCH_CHECK(input.is_cpu() && input.scalar_type() == at::kFloat, "float32 on the CPU expected");
    const auto x = input.contiguous();
    auto out = at::empty_like(x);
    const int64_t rows = means.numel(), count = x.numel() / rows;
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = x.data_ptr<float>() + row * count;
        float* to = out.data_ptr<float>() + row * count;
        const float mean = means.data_ptr<float>()[row];
        const float scale = 1.0f / std::sqrt(variances.data_ptr<float>()[row] + static_cast<float>(eps));
        for (int64_t i = 0; i < count; ++i) {
            to[i] = (from[i] - mean) * scale;
        }
    }
    return out;
}
"""

extension = load_inline(
    name="scaled_rows", cpp_sources=source, functions={"scaled": "normalised rows"}, extra_cflags=["-O2"]
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)

    def forward(self, x):
        y = self.conv(x)
        return extension.scaled(y, *torch.var_mean(y, dim=(2, 3), correction=0), 1e-5)
