"""Which device a backend runs on here. Asks the driver through NVML; torch is not needed."""

from __future__ import annotations

import functools
import os
from typing import Literal

Backend = Literal["cuda", "cpp"]


@functools.cache
def gpu_count() -> int:
    """GPUs that the driver offers this process; 0 without a driver."""
    import pynvml

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return 0
    try:
        pynvml.nvmlInit()
        count = int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return 0
    return count if visible is None else min(count, len(visible.split(",")))


def default_backend() -> Backend:
    """`cuda` where there is a GPU, else `cpp`."""
    return "cuda" if gpu_count() else "cpp"


def device_for(backend: Backend) -> str | None:
    """`cuda:0` or `cpu`; None when the backend's device is not there."""
    if backend == "cpp":
        return "cpu"
    return "cuda:0" if gpu_count() else None
