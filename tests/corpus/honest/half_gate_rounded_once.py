# problem: half_silu_gate
# expected: correct
# settings: {"measure": false}
"""Mechanism: float32 inside, rounded to float16 once, where the reference rounds twice. Surface: other bits."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, gate, up):
        gate = gate.float()
        return (gate / (1.0 + (-gate).exp()) * up.float()).half()
