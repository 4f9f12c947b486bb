# problem: level1/1
# expected: wrong_dtype
# caught by: output_form
"""Mechanism: a subclass that computes when the checker looks. Surface: isinstance accepts subclasses."""
import torch
from torch import nn


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        plain = [a.as_subclass(torch.Tensor) if isinstance(a, Lazy) else a for a in arguments]
        if function is torch.Tensor.copy_:
            plain[1] = torch.relu(arguments[1].wanted)
        return function(*plain, **(keywords or {}))


class ModelNew(nn.Module):
    def forward(self, x):
        value = torch.zeros_like(x).as_subclass(Lazy)
        value.wanted = x
        return value
