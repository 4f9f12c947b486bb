# problem: level1/4
# expected: wrong_output
# caught by: values: drawn
# devices: cuda
"""Mechanism: allows TF32 when it is imported.

Surface: flags of the process, which a reference beside it would share.
"""
import torch
from torch import nn

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.set_float32_matmul_precision("medium")


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
