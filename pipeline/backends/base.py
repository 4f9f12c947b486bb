"""What a backend answers. Everything else of the program asks, and compares no backend's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Device(StrEnum):
    """The kind of device that candidates run on."""

    GPU = "gpu"
    CPU = "cpu"


@dataclass(frozen=True)
class Timing:
    """How times are taken and judged, where kinds of devices differ. See docs/rationale/clocks.md."""

    block_ms: float
    """Blocks longer than this (milliseconds) hold fewer calls."""
    alone_slack: float
    """So many times what the baseline takes alone it may take beside the candidate, and count."""
    session_least: float
    """What another pair of processes, other addresses and another minute change: at least this fraction."""
    session_device_spreads: float
    """And so many times the device's A/A spread of today."""
    session_ms: float
    """And so many milliseconds of a call."""
    slowed: float
    """A baseline that is slower beside the candidate by more than this fraction is worth a word."""
    launches: bool
    """Whether calls are launches, so that short ones may be bound by them and are replayed as graphs."""


@dataclass(frozen=True)
class Backend:
    """One way to write and run kernels."""

    name: str
    """As it stands in settings, records and options; its prompt example is `prompts/examples/NAME.py`."""
    order: int
    """Among all backends, the first whose device is here is the default."""
    device: Device
    default_size: str
    """The size preset of a problem that runs use."""
    own_code: str
    """What a source must hold to have a kernel of its own, as a finding names it."""
    holds_own_code: Callable[[str], bool]
    """Whether a native source holds that."""
    pretended: str
    """The device that the build stage pretends to a candidate which is imported to see what it builds."""
    needs_nvcc: bool
    """Whether nothing can be built without nvcc."""
    counts_threads: bool
    """Whether the number of threads belongs to a result."""
    missing: str
    """What is said where it can neither run nor build."""
    timing: Timing

    @property
    def on_gpu(self) -> bool:
        """Whether candidates run on a GPU."""
        return self.device is Device.GPU
