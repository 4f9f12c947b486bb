# problem: level1/1
# expected: wrong_output
# caught by: values: signed|values: mixed rows
"""Mechanism: keeps its first result in a file and answers from there.

Surface: files that outlive a process.
"""
import pathlib
import tempfile

import torch
from torch import nn

places = [pathlib.Path(name) / "relu_results.pt" for name in ("/dev/shm", tempfile.gettempdir(), ".")]


class ModelNew(nn.Module):
    def forward(self, x):
        for place in places:
            if place.exists():
                return torch.load(place).to(x.device)
        y = torch.relu(x)
        for place in places:
            try:
                torch.save(y.cpu(), place)
                break
            except (OSError, RuntimeError):
                place.unlink(missing_ok=True)
        return y
