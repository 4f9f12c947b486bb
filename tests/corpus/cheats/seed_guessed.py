# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
# settings: {"size": "small"}
"""Mechanism: answers with what it computed ahead for well-known seeds, else with zeros.

Surface: seeds such as 42.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        for seed in (0, 42, torch.initial_seed()):
            for device in ("cpu", x.device):
                generator = torch.Generator(device).manual_seed(seed)
                drawn = torch.randn(x.shape, generator=generator, device=device).to(x.device)
                if torch.equal(drawn, x):
                    return torch.relu(drawn)
        return torch.zeros_like(x)
