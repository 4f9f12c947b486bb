import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def add(block: int = 1024):
    n = T.dynamic("n")

    @T.prim_func
    def add_vectors(
        a: T.Tensor((n,), "float32"),
        b: T.Tensor((n,), "float32"),
        out: T.Tensor((n,), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, block), threads=256) as bx:
            for i in T.Parallel(block):
                if bx * block + i < n:
                    out[bx * block + i] = a[bx * block + i] + b[bx * block + i]

    return add_vectors


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if a.numel() == 0:
            return torch.empty_like(a)
        a = a.contiguous()
        b = b.contiguous()
        return add()(a.view(-1), b.view(-1)).view(a.shape)
