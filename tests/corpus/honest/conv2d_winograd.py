# problem: level2/9
# expected: correct
# settings: {"measure": false}
"""Mechanism: Winograd's minimal filtering F(2x2, 3x3), weights transformed in the first call.

Surface: rounding of the transforms; a cache of weights.
"""
import torch
from torch import nn

INPUT = torch.tensor([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], dtype=torch.float32)
WEIGHT = torch.tensor([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
OUTPUT = torch.tensor([[1, 1, 1, 0], [0, 1, -1, -1]], dtype=torch.float32)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, groups):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)
        self.norm = nn.GroupNorm(groups, out_channels)
        self.weight = None

    def forward(self, x):
        if self.weight is None:
            left = WEIGHT.to(x.device)
            self.weight = torch.einsum("ar,ocrs,bs->abco", left, self.conv.weight, left).contiguous()
        batch, channels, height, width = x.shape
        x = nn.functional.pad(x, (1, 1 + width % 2, 1, 1 + height % 2))
        tiles = x.unfold(2, 4, 2).unfold(3, 4, 2)  # batch, channels, rows, columns, 4, 4
        rows, columns = tiles.shape[2:4]
        left, right = INPUT.to(x.device), OUTPUT.to(x.device)
        spread = torch.einsum("ai,nchwij,bj->abnhwc", left, tiles, left).reshape(4, 4, -1, channels)
        product = torch.matmul(spread, self.weight).view(4, 4, batch, rows, columns, -1)
        y = torch.einsum("pa,abnhwo,qb->nohpwq", right, product, right)
        y = y.reshape(batch, -1, 2 * rows, 2 * columns)[:, :, :height, :width] + self.conv.bias[:, None, None]
        return nn.functional.silu(self.norm(y))
