"""torch.compile inside the sandbox, for baselines only: compiles the problem's model and warms it up.

Compiler and kernels are made in the process itself. The files of torch.compile lie in the scratch directory,
through `HOME` and `TMPDIR`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from kernelproof.verifier.contestant.loop import Forward, Slot

MODES: dict[str, str | None] = {"compile": None, "max-autotune": "max-autotune"}
"""The baseline's name and torch.compile's mode."""
WARM_UP_CALLS = 4
"""At least: the first compiles, the next two let max-autotune run and record its CUDA graph, one replays."""


def compile_model(
    model: torch.nn.Module, kind: str, slots: Sequence[Slot], device: torch.device
) -> tuple[Forward, dict[str, Any]]:
    """The compiled model, called on every slot and at least `WARM_UP_CALLS` times; and what was seen.

    Seen are `graphs` and `graph_breaks` (numbers), and `seconds` until everything was compiled. From then on
    a call that would compile again raises RuntimeError: it would be timed as if it were a call. Raises
    whatever compiler and model raise, and where torch.compile would silently run the model eagerly instead
    because it had to compile it too often.
    """
    import torch._dynamo
    from torch._dynamo.utils import counters

    torch._dynamo.config.fail_on_recompile_limit_hit = True
    began = time.monotonic()
    forward: Forward = torch.compile(model, mode=MODES[kind], dynamic=False)
    with torch.no_grad():
        for number in range(max(WARM_UP_CALLS, len(slots))):
            forward(*slots[number % len(slots)].arguments)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    torch.compiler.set_stance("fail_on_recompile")
    return forward, {
        "graphs": int(counters["stats"]["unique_graphs"]),
        "graph_breaks": sum(counters["graph_break"].values()),
        "seconds": round(time.monotonic() - began, 3),
    }
