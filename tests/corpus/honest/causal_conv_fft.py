# problem: level1/19
# expected: correct
# settings: {"measure": false}
"""Mechanism: convolution as a product of spectra. Surface: the error does not fall with the element's size."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, kernel_size, groups=channels)

    def forward(self, x):
        taps = self.conv.weight.squeeze(1).flip(1)
        length = x.shape[-1]
        size = 1 << (length + taps.shape[-1] - 1).bit_length()
        spectrum = torch.fft.rfft(x, size) * torch.fft.rfft(taps, size)
        return torch.fft.irfft(spectrum, size)[..., :length] + self.conv.bias[:, None]
