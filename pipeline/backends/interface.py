"""What a backend answers. Everything else of the program asks, and compares no backend's name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from typing import Protocol


class Device(StrEnum):
    """The kind of device that candidates run on."""

    GPU = "gpu"
    CPU = "cpu"


@dataclass(frozen=True)
class Timing:
    """How times are taken and judged, where kinds of devices differ. See docs/rationale/measurement.md."""

    longest_block_ms: float
    """Blocks longer than this (milliseconds) hold fewer calls."""
    alone_slack: float
    """The baseline's time beside the candidate counts up to this multiple of its time alone."""
    loop_slack: float | None
    """What the baseline's loop costs a call besides counts up to this multiple of its cost alone; None: all
    of it counts."""
    session_least: float
    """What another pair of processes, other addresses and another minute change: at least this fraction."""
    session_device_spreads: float
    """And at least this multiple of the device's A/A spread of today."""
    session_ms: float
    """And at least this many milliseconds of a call."""
    slowed: float
    """A baseline that is slower beside the candidate by more than this fraction is worth a word."""
    launches: bool
    """Whether calls are launches, so that short ones may be bound by them and are replayed as graphs."""


class Inside(Protocol):
    """What a backend does in a candidate's process. The process has no module of ours but its runner, so the
    text of the class is sent there: methods use nothing but their arguments, and what they import.
    """

    def compile_only(self, capability: tuple[int, int]) -> None:
        """From now on kernels are compiled for a GPU of this compute capability, and none is launched."""

    def compile_error(self, error: BaseException) -> bool:
        """Whether the compiler refused a kernel, and raised this."""

    def interpreter_lacks(self, error: BaseException) -> bool:
        """Whether a kernel raised this because the interpreter lacks a function. A GPU may run the kernel."""

    def made(self) -> Sequence[tuple[str, ...]]:
        """Names of the kernels that there are in this process, the file that each was written in, and,
        where it is known, the text of those that were compiled."""

    def interpreted(self, called: Callable[[str], None]) -> None:
        """Has `called` told the name of each kernel that is interpreted from now on."""


@dataclass(frozen=True)
class Words:
    """What a prompt's template says of a backend."""

    language: str
    """What kernels are written in: `CUDA C++`."""
    rules: tuple[str, ...]
    """How the program has to be written, each rule a paragraph."""


@dataclass(frozen=True)
class FirstCall:
    """Kernels that are compiled when they are first called, by a package of Python's."""

    package: str
    """The package, which candidates import."""
    inside: type[Inside]
    variables: Mapping[str, str]
    cache: str
    """The variable that says where the compiler keeps its results. The runner sets it to a folder of the
    candidate's own, which is handed on from the build stage to the process that is judged."""
    tunes: Callable[[str], bool]
    """Whether a program tries out ways to run its kernels in their first call."""
    interpreter: Mapping[str, str] | None = None
    """Variables with which kernels are interpreted on a CPU; None where they cannot be."""
    interpreted_size: str = "small"
    """The size preset that runs use then."""
    written_name: Callable[[str], str] = str
    """The name that the source gives a kernel, by the name of the compiled one."""

    @property
    def text(self) -> str:
        """The program that defines `Inside`."""
        source = inspect.getsource(self.inside)
        return f"from __future__ import annotations\n\n{source}\nInside = {self.inside.__name__}\n"

    @property
    def is_there(self) -> bool:
        """Whether the package is installed."""
        return find_spec(self.package) is not None

    def message(self, *, interpret: bool) -> dict[str, object]:
        """The message about it for a candidate's process."""
        variables = {**self.variables, **((self.interpreter or {}) if interpret else {})}
        return {"text": self.text, "variables": variables, "cache": self.cache, "interpret": interpret}


@dataclass(frozen=True)
class Backend:
    """One way to write and run kernels."""

    name: str
    """As it stands in settings, records and options; its prompt example is `prompts/examples/NAME.py`."""
    order: int
    """Among kernelproof's own, the first whose device is here is the default. Another package's is never."""
    device: Device
    default_size: str
    """The size preset of a problem that runs use."""
    own_code: str
    """What a source must hold to have a kernel of its own, as a finding names it."""
    holds_own_code: Callable[[str], bool]
    """Whether a native source holds that; the program itself where kernels are compiled at a first call."""
    pretended: str
    """The device that the build stage pretends to a candidate which is imported to see what it builds."""
    needs_nvcc: bool
    """Whether nothing can be built without nvcc."""
    counts_threads: bool
    """Whether the number of threads belongs to a result."""
    missing: str
    """What is said where it can neither run nor build."""
    timing: Timing
    words: Words
    summary: str = ""
    """What it is, in a few words: `inline CUDA on a GPU`. The help of `--backend` says it."""
    untried: str = ""
    """For the user: the parts that were never seen to work; empty where there are none."""
    template: str = "basic-v2"
    """The prompt's template, where the user names none."""
    first_call: FirstCall | None = None
    """How kernels are compiled when they are first called; None: extensions are built."""

    @property
    def interpretable(self) -> bool:
        """Whether its kernels can be interpreted here where there is no GPU."""
        first = self.first_call
        return self.on_gpu and first is not None and first.interpreter is not None and first.is_there

    @property
    def is_installed(self) -> bool:
        """Whether the package is there that compiles its kernels at the first call, if one is needed."""
        return self.first_call is None or self.first_call.is_there

    @property
    def on_gpu(self) -> bool:
        """Whether candidates run on a GPU."""
        return self.device is Device.GPU
