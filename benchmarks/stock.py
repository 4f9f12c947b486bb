"""One candidate, evaluated as is usual: ``python -m benchmarks.stock PROBLEM_FILE CANDIDATE_FILE cpu|cuda``.

A fresh process, torch's own `load_inline` in an empty folder, five trials on inputs drawn on the CPU,
`allclose`, a hundred timed calls of each side one after the other. Prints one line of JSON. This is what the
throughput benchmark compares with; nothing here is a verdict to believe.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import torch

TRIALS, CALLS, WARM_UP = 5, 100, 3
TOLERANCE = 1e-2
SEED = 42


def main() -> None:
    problem_file, candidate_file, device = sys.argv[1:]
    began = time.monotonic()
    result: dict[str, Any] = {"correct": False, "speedup": None, "error": ""}
    try:
        result |= evaluated(loaded("problem", problem_file), loaded("candidate", candidate_file), device)
    except Exception as error:
        result["error"] = f"{type(error).__name__}: {error}"[:500]
    print(json.dumps(result | {"seconds": time.monotonic() - began}))


def loaded(name: str, path: str) -> ModuleType:
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def evaluated(problem: ModuleType, candidate: ModuleType, device: str) -> dict[str, Any]:
    models = []
    for make in (problem.Model, candidate.ModelNew):
        torch.manual_seed(SEED)
        models.append(make(*problem.get_init_inputs()).to(device))
    reference, new = models
    with torch.no_grad():
        for trial in range(TRIALS):
            torch.manual_seed(SEED + trial)
            inputs = drawn(problem, device)
            expected, got = reference(*inputs), new(*inputs)
            if expected.shape != got.shape or not torch.allclose(expected, got, TOLERANCE, TOLERANCE):
                return {"error": "the outputs differ"}
        inputs = drawn(problem, device)
        times = [timed(lambda model=model: model(*inputs), device) for model in models]
    return {"correct": True, "speedup": times[0] / times[1]}


def drawn(problem: ModuleType, device: str) -> list[Any]:
    return [x.to(device) if isinstance(x, torch.Tensor) else x for x in problem.get_inputs()]


def timed(call: Callable[[], Any], device: str) -> float:
    """Mean milliseconds of a call."""
    for _ in range(WARM_UP):
        call()
    found = []
    for _ in range(CALLS):
        if device == "cuda":
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            stop.record()
            torch.cuda.synchronize()
            found.append(start.elapsed_time(stop))
        else:
            before = time.perf_counter()
            call()
            found.append((time.perf_counter() - before) * 1e3)
    return statistics.fmean(found)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="kernelproof-stock-") as folder:
        import os

        os.environ["TORCH_EXTENSIONS_DIR"] = folder
        main()
