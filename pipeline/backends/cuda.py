"""Inline CUDA on a GPU."""

from __future__ import annotations

from pipeline.backends.base import Backend, Device, Timing

BACKEND = Backend(
    name="cuda",
    order=0,
    device=Device.GPU,
    default_size="full",
    own_code="a `__global__` kernel",
    holds_own_code=lambda text: "__global__" in text,
    pretended="cuda",
    needs_nvcc=True,
    counts_threads=False,
    missing="the cuda backend needs a GPU, or at least nvcc to build with; neither is here. "
    "Use --backend cpp, or see kernelproof doctor",
    timing=Timing(
        block_ms=60.0,
        alone_slack=1.005,
        session_least=0.004,
        session_device_spreads=0.0,
        session_ms=0.0002,
        slowed=0.05,
        launches=True,
    ),
)
