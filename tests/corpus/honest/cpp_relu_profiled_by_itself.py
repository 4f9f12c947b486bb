# problem: level1/1
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: an own function computes, in a range of the profiler's and with an own record of its first call.

Surface: a program that starts and stops profilers looks like one that stops the record of its call.
"""
import torch
from torch import nn
from torch.autograd.profiler import record_function
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
torch::Tensor rectified(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    const float* from = x.data_ptr<float>();
    float* to = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] > 0 ? from[i] : 0;
    return y;
}
"""
extension = load_inline("rectified", cpp_sources=[SOURCE], functions=["rectified"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.seconds = None

    def forward(self, x):
        if self.seconds is None:
            with torch.autograd.profiler.profile() as record:
                y = extension.rectified(x)
            self.seconds = record.self_cpu_time_total / 1e6
            return y
        with record_function("rectify"):
            return extension.rectified(x)
