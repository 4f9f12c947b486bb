# problem: level2/10
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: TorchScript's fuser writes and compiles the kernel when it runs.

Surface: a kernel that no list of libraries' names holds, and no operator of torch launched.
"""
import torch
from torch import nn


@torch.jit.script
def gate_and_multiply(gate, up):
    return gate * torch.sigmoid(gate) * up


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return gate_and_multiply(gate, up)
