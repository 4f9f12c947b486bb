"""What NVML says of one GPU while a judge has it: foreign processes that compute on it, and its faults.

Asked from the judge's process, which has no CUDA context of its own: those on its GPU are of its children.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import psutil

from kernelproof.wording import counted

PROGRAMS_XIDS = frozenset({13, 31, 43, 45, 68, 109})
"""Errors in the driver's log that a program causes by itself (NVIDIA, "XID Errors"): a wild pointer, say. A
candidate may cause them as often as it likes. All others accuse the GPU, its driver or its links."""
MOST_EVENTS = 1000
"""Errors of programs that are read at one look; a candidate can cause more, which the next look reads."""
GPU_FILES = "/dev/nvidia"
"""Device files through which programs reach GPUs begin so."""
INITIAL_NAMESPACE = "pid:[4026531836]"
"""The kernel's own name for the namespace of process numbers that it started with."""


@dataclass(frozen=True)
class Stranger:
    """A process on the GPU that is none of ours."""

    pid: int
    name: str

    def __str__(self) -> str:
        return f"process {self.pid}" + (f" ({self.name})" if self.name else "")


class GpuWatch:
    """Looks at one GPU. Not thread-safe.

    Where the driver does not answer (in virtual machines, without permission), the GPU counts as good.
    """

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        self._nvml: Any = None
        self._handle: Any = None
        self._events: Any = None
        self._uncorrected: int | None = None
        """Uncorrected errors of its memory since the driver was loaded, when this watch began."""

    def strangers(self, *, alone: bool) -> tuple[Stranger, ...]:
        """Foreign processes that compute on the GPU, as far as they can be told from ours.

        `alone`: nothing of ours runs on it, so that every process is a stranger. Otherwise those are ours
        that descend from this process. In a container the driver may tell numbers of the host, or none.
        There a number is believed if one of ours is told beside it, or if its process here has a GPU's file
        open.
        """
        try:
            listed = self._ask("nvmlDeviceGetComputeRunningProcesses") or ()
        except _Lost:
            return ()
        return tuple(_strangers(sorted({int(each.pid) for each in listed}), alone))

    def fault(self) -> str | None:
        """Why the GPU must not be used any more; None while nothing speaks against it. The first call notes
        what there was before."""
        try:
            return self._event() or self._memory() or self._rows()
        except _Lost as error:
            return str(error)

    def close(self) -> None:
        """Lets go of NVML; the next question opens it again, as one needs after a GPU was reset."""
        nvml, self._nvml, self._handle, self._uncorrected = self._nvml, None, None, None
        if nvml is None:
            return
        for end in (lambda: self._events is None or nvml.nvmlEventSetFree(self._events), nvml.nvmlShutdown):
            try:
                end()
            except nvml.NVMLError:  # the driver is gone, too
                continue
        self._events = None

    def _event(self) -> str | None:
        """The first error since the last look that no program causes by itself."""
        self._open()
        if self._events is None:
            return None
        for _ in range(MOST_EVENTS):
            try:
                seen = self._nvml.nvmlEventSetWait_v2(self._events, 0)
            except self._nvml.NVMLError as error:
                self._require(error)
                return None
            if seen.eventType & self._nvml.nvmlEventTypeDoubleBitEccError:
                return "the driver reported an uncorrectable error of its memory"
            if int(seen.eventData) not in PROGRAMS_XIDS:
                return f"the driver reported Xid {int(seen.eventData)}"
        return None

    def _memory(self) -> str | None:
        nvml = self._open()
        kinds = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        now = self._ask("nvmlDeviceGetTotalEccErrors", *kinds)
        if now is None:
            return None
        before, self._uncorrected = self._uncorrected, int(now)
        if before is None or now <= before:
            return None
        return f"its memory had {counted(int(now) - before, 'uncorrectable error')}"

    def _rows(self) -> str | None:
        rows = self._ask("nvmlDeviceGetRemappedRows")
        return "a broken row of its memory could not be replaced" if rows is not None and rows[3] else None

    def _ask(self, question: str, *more: object) -> Any:
        """The answer; None where the driver gives none. Raises _Lost."""
        nvml = self._open()
        try:
            return getattr(nvml, question)(self._handle, *more)
        except nvml.NVMLError as error:
            self._require(error)
            return None

    def _open(self) -> Any:
        """NVML, with this GPU's handle. Raises _Lost."""
        if self._nvml is not None:
            return self._nvml
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise _Lost(f"the driver does not answer ({error})") from None
        self._nvml = pynvml
        try:
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(self.uuid)
        except pynvml.NVMLError as error:
            self.close()
            raise _Lost(f"the driver no longer finds it ({error})") from None
        self._events = self._registered(pynvml)
        return pynvml

    def _registered(self, nvml: Any) -> Any:
        kinds = nvml.nvmlEventTypeXidCriticalError | nvml.nvmlEventTypeDoubleBitEccError
        try:
            events = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(self._handle, kinds, events)
        except nvml.NVMLError:
            return None
        return events

    def _require(self, error: Exception) -> None:
        """Raises _Lost for an answer that means that the GPU is gone."""
        nvml = self._nvml
        gone = (
            nvml.NVML_ERROR_GPU_IS_LOST,
            nvml.NVML_ERROR_RESET_REQUIRED,
            nvml.NVML_ERROR_DRIVER_NOT_LOADED,
        )
        if getattr(error, "value", None) in gone:
            self.close()
            raise _Lost(f"the driver lost it ({error})")


class _Lost(Exception):
    """The GPU is not there any more, or not to be used before a reset."""


def _strangers(pids: Collection[int], alone: bool) -> Iterator[Stranger]:
    ours = {pid for pid in pids if _is_ours(pid)}
    same = bool(ours) or _numbers_are_ours()
    for pid in pids:
        if alone and not _numbers_are_ours():
            yield Stranger(pid, "")  # the process with that number here is another one
        elif pid not in ours:
            name = _name(pid)
            if name is not None and (same or _has_gpu_open(pid)):
                yield Stranger(pid, name)


def _is_ours(pid: int) -> bool:
    """Whether it is this process or descends from it."""
    try:
        return pid == os.getpid() or any(each.pid == os.getpid() for each in psutil.Process(pid).parents())
    except psutil.Error:
        return False


def _name(pid: int) -> str | None:
    """Its program's name; None where there is no such process here, or where it is over."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return "".join(c if c.isprintable() else " " for c in process.name())
    except psutil.NoSuchProcess:
        return None
    except psutil.Error:
        return ""


def _numbers_are_ours() -> bool:
    """Whether the driver and this process mean the same by a process number."""
    try:
        return os.readlink("/proc/self/ns/pid") == INITIAL_NAMESPACE  # noqa: PTH115 - it is no path
    except OSError:
        return False


def _has_gpu_open(pid: int) -> bool:
    """Whether a process that is visible here has a GPU's device file open."""
    place = f"/proc/{pid}/fd"
    try:
        return any(_target(f"{place}/{fd}").startswith(GPU_FILES) for fd in os.listdir(place))  # noqa: PTH208
    except OSError:
        return False


def _target(link: str) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115
    except OSError:
        return ""
