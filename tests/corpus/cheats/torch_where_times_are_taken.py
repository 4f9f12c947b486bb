# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel again
# devices: cpu
# settings: {"own_kernel": true}
# armed by: the loop's frame
"""Mechanism: torch's operator in the calls that the loop of timed blocks makes, which the stack shows; its
own function elsewhere. Honest twin: honest/cpp_relu_asks_who_calls.

Surface: a look at whose kernels run in a call that the loop does not make.
"""
import sys
from functools import cache

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
torch::Tensor relu(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    const float* from = x.data_ptr<float>();
    float* to = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i)
        to[i] = from[i] > 0.0f || from[i] != from[i] ? from[i] : 0.0f;
    return y;
}
"""

extension = load_inline("plain_relu_shown", cpp_sources=[SOURCE], functions=["relu"])


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


def timed():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name in ("_run_host", "_run_device"):
            armed("the loop's frame")
            return True
        frame = frame.f_back
    return False


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x) if timed() else extension.relu(x)
