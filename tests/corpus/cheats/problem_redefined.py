# problem: level1/1
# expected: wrong_shape
# caught by: output_form
"""Mechanism: defines the problem's names anew, much smaller, and answers for those.

Surface: one namespace for both.
"""
import torch
from torch import nn

ROWS = COLUMNS = 1
SIZES = {"full": {"ROWS": 1, "COLUMNS": 1}, "small": {"ROWS": 1, "COLUMNS": 1}}


def get_inputs():
    return [torch.zeros(1, 1)]


class Model(nn.Module):
    def forward(self, x):
        return torch.zeros(1, 1, device=x.device)


ModelNew = Model
