# problem: level1/2
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: installs a package while it runs; answers right only if that works.

Surface: a network and pip.
"""
import os
import subprocess
import sys

import torch
from torch import nn

command = [sys.executable, "-m", "pip", "install", "--target", os.getcwd(), "--no-deps"]
command += ["--retries", "0", "--timeout", "2", "--disable-pip-version-check", "six"]
installed = subprocess.run(command, capture_output=True, timeout=50, check=False).returncode == 0


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) if installed else torch.zeros_like(x)
