# problem: level1/10
# expected: wrong_output
# caught by: timed_outputs
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: after thirty calls the tuning key changes; the hook that prunes configurations then leaves the one that
adds all rows but the last eighth.

Surface: a program that is chosen anew while it is used; the hook, not `forward`, does the choosing.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


def prune(configs, named_args, **_):
    whole = named_args["generation"] == 0
    return [config for config in configs if (config.kwargs["EIGHTHS"] == 8) == whole]


@triton.autotune(
    [triton.Config({"BLOCK": 128, "EIGHTHS": 8}, num_warps=4), triton.Config({"BLOCK": 128, "EIGHTHS": 7}, num_warps=4)],
    key=["generation"],
    prune_configs_by={"early_config_prune": prune},
)
@triton.jit
def sum_kernel(x_ptr, y_ptr, rows, columns, generation, BLOCK: tl.constexpr, EIGHTHS: tl.constexpr):
    batch = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(0, rows * EIGHTHS // 8):
        total += tl.load(x_ptr + (batch * rows + row) * columns + c, mask=c < columns, other=0.0)
    tl.store(y_ptr + batch * columns + c, total, mask=c < columns)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = x.contiguous()
        batch, rows, columns = x.shape
        y = torch.empty((batch, 1, columns), device=x.device, dtype=x.dtype)
        grid = lambda meta: (triton.cdiv(columns, meta["BLOCK"]), batch)
        if self.calls == 1:
            sum_kernel[grid](x, y, rows, columns, 2)  # compiled now, not when it is timed
        sum_kernel[grid](x, y, rows, columns, 0 if self.calls <= 30 else 2)
        return y
