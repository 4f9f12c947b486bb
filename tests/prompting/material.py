"""Problems, prompts and verifications to make prompts of."""

from __future__ import annotations

from typing import Any

from kernelproof.hashing import sha256_text
from kernelproof.types import (
    Build,
    BuildState,
    Ceilings,
    ErrorStatistics,
    Interval,
    Measurement,
    Pace,
    Problem,
    Roofline,
    Signature,
    Status,
    Verification,
    VerifySettings,
)

SOURCE = '''"""Scales."""
import torch

n = 1024


class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, y):
        return x * self.scale + y
'''


def problem(source: str = SOURCE, **changes: Any) -> Problem:
    """A problem with two sizes."""
    fields: dict[str, Any] = {
        "id": "level1/7",
        "suite": "kernelproof",
        "name": "scale",
        "source": source,
        "sha256": sha256_text(source),
        "sizes": {"full": {"n": 1024}, "small": {"n": 16, "shape": (2, 3)}},
        "signature": Signature(init=("scale",), forward=("x", "y")),
    }
    return Problem(**fields | changes)


def verification(status: Status, **changes: Any) -> Verification:
    """A verification of `problem()` that ended with `status`."""
    fields: dict[str, Any] = {
        "status": status,
        "reason": f"seen: {status.value}",
        "problem_id": "level1/7",
        "problem_sha256": "0",
        "candidate_sha256": "1",
        "settings": VerifySettings(backend="cpp"),
        "verifier": "test",
        "created": "2026-01-01T00:00:00Z",
    }
    return Verification(**fields | changes)


def build(state: BuildState, log: str) -> Build:
    """A build that ended with `state`."""
    return Build(key="k", state=state, name="extension", log=log)


def errors(**changes: Any) -> ErrorStatistics:
    """Three of 4096 elements wrong."""
    fields: dict[str, Any] = {
        "trial": "large",
        "output": 1,
        "dtype": "float32",
        "count": 4096,
        "wrong": 3,
        "max_abs": 0.125,
        "max_rel": 0.5,
        "relative_norm": 0.001,
        "reference_relative_norm": 1e-7,
        "nan": 2,
        "first_bad": (0, 17),
        "expected": 1.5,
        "got": -2.25,
    }
    return ErrorStatistics(**fields | changes)


def measurement(speedup: float, pace: Pace) -> Measurement:
    """The reference takes 2 ms."""
    return Measurement(
        candidate_ms=2.0 / speedup,
        baseline_ms=2.0,
        speedup=speedup,
        speedup_interval=Interval(low=speedup * 0.9, high=speedup * 1.1),
        pace=pace,
        resolution=0.01,
        aa_spread=0.003,
        host_ms=2.0 / speedup,
        overhead_ms=0.0,
        flush_bytes=0,
        slots=2,
    )


def roofline(**changes: Any) -> Roofline:
    """A call that moves 64 MiB and computes little."""
    fields: dict[str, Any] = {
        "bytes_read": 64 << 20,
        "bytes_written": 1536,
        "bytes_needed": 1,
        "operations": 2_000_000,
        "memory_ms": 0.1,
        "compute_ms": 0.002,
        "needed_ms": 0.01,
        "fraction": 0.4,
        "ceilings": Ceilings(
            bytes_per_s=3e12,
            operations_per_s=1e15,
            cache_bytes=1 << 20,
            aa_spread=0.01,
            measured="2026-01-01",
        ),
    }
    return Roofline(**fields | changes)
