# problem: level3/4
# expected: correct
"""Mechanism: torch's own LSTM, made in the first call from the weights as they then are.

Surface: further parameters of other names appear after the first call.
"""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_features, hidden):
        super().__init__()
        self.input = nn.Linear(in_features, 4 * hidden)
        self.recurrent = nn.Linear(hidden, 4 * hidden)
        self.fused = None

    def forward(self, x, h, c):
        if self.fused is None:
            self.fused = nn.LSTM(x.shape[-1], h.shape[-1], batch_first=True, device=x.device)
            self.fused.weight_ih_l0.copy_(self.input.weight)
            self.fused.weight_hh_l0.copy_(self.recurrent.weight)
            self.fused.bias_ih_l0.copy_(self.input.bias)
            self.fused.bias_hh_l0.copy_(self.recurrent.bias)
        y, (last_h, last_c) = self.fused(x, (h[None], c[None]))
        return y, last_h[0], last_c[0]
