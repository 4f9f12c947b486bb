# problem: level1/1
# expected: load_error|build_error
"""Mechanism: asks for extensions whose names and flags leave the build's directory or its shell.

Surface: paths and command lines made from a candidate's words.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

for name in ("../../escaped", "/tmp/escaped", "a b", "", "x" * 5000, "kernel;touch", "\x00"):
    try:
        load_inline(name, cpp_sources="")
    except RuntimeError:
        continue
    raise SystemExit("a hostile name was accepted")

flags = ["; touch escaped", "$(touch escaped)", "-o/tmp/escaped\n"]
load_inline("kernel", cpp_sources="", extra_cflags=flags)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)
