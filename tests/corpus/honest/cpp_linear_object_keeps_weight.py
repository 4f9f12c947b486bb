# problem: level2/4
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: a C++ class, bound by the extension's own PYBIND11_MODULE, keeps the transposed weight.

Surface: a bound method instead of a function of the extension; state that lives in C++ from the first call on.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

class Layer {
public:
    Layer(const torch::Tensor& weight, const torch::Tensor& bias)
        : columns_(weight.detach().t().contiguous()), bias_(bias.detach().contiguous()) {}

    torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual) const {
        const auto in = x.contiguous(), rest = residual.contiguous();
        const int64_t rows = in.size(0), depth = columns_.size(0), width = columns_.size(1);
        TORCH_CHECK(in.size(1) == depth && rest.size(1) == width, "sizes do not fit");
        auto y = at::empty({rows, width}, in.options());
        const float *a = in.data_ptr<float>(), *w = columns_.data_ptr<float>(), *b = bias_.data_ptr<float>();
        for (int64_t i = 0; i < rows; ++i) {
            float* out = y.data_ptr<float>() + i * width;
            std::copy_n(b, width, out);
            for (int64_t k = 0; k < depth; ++k) {
                for (int64_t j = 0; j < width; ++j) {
                    out[j] += a[i * depth + k] * w[k * width + j];
                }
            }
            for (int64_t j = 0; j < width; ++j) {
                out[j] = (out[j] < 0.0f ? 0.0f : out[j]) + rest.data_ptr<float>()[i * width + j];
            }
        }
        return y;
    }

private:
    torch::Tensor columns_, bias_;
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    pybind11::class_<Layer>(m, "Layer")
        .def(pybind11::init<torch::Tensor, torch::Tensor>())
        .def("forward", &Layer::forward);
}
"""

extension = load_inline(name="linear_object", cpp_sources=source, functions=None, extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.layer = None

    def forward(self, x, residual):
        if self.layer is None:
            self.layer = extension.Layer(self.linear.weight, self.linear.bias)
        return self.layer.forward(x, residual)
