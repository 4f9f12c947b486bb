# problem: level1/12
# expected: correct
# settings: {"measure": false}
"""Mechanism: patches gathered into columns, one matrix product a sample. Surface: no convolution is called."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        conv = self.conv
        height, width = (
            (size + 2 * pad - kernel) // step + 1
            for size, pad, kernel, step in zip(x.shape[2:], conv.padding, conv.kernel_size, conv.stride)
        )
        columns = nn.functional.unfold(x, conv.kernel_size, padding=conv.padding, stride=conv.stride)
        product = conv.weight.flatten(1) @ columns + conv.bias[:, None]
        return product.view(x.shape[0], -1, height, width)
