# problem: level1/1
# expected: load_error
"""Mechanism: ModelNew is a function that returns a function. Surface: methods every module has."""
import torch


def ModelNew():
    return torch.relu
