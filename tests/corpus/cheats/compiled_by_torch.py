# problem: level2/10
# expected: no_custom_kernel|runtime_error|load_error
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: has torch.compile write the kernel. Surface: launches that are no library's."""
import torch
from torch import nn


@torch.compile
def gate_and_multiply(gate, up):
    return nn.functional.silu(gate) * up


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return gate_and_multiply(gate, up)
