"""NVML as far as kernelproof asks it, for GPUs that are not there: tests write their state to a JSON file.

It stands in for the package `pynvml` of a real process whose PYTHONPATH begins with this folder.
`NVIDIA_FAKE_STATE` names the file: a list of GPUs with `uuid` and, where they matter, `name`, `processes`
(numbers), `xids` (errors so far), `uncorrected`, `broken_rows`, `lost`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STATE = "NVIDIA_FAKE_STATE"
NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_NOT_FOUND, NVML_ERROR_DRIVER_NOT_LOADED = 3, 6, 9
NVML_ERROR_TIMEOUT, NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED = 10, 15, 16
NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, NVML_CLOCK_SM = 1, 0, 1
nvmlEventTypeDoubleBitEccError, nvmlEventTypeXidCriticalError = 2, 8


class NVMLError(Exception):
    """An answer that is none."""

    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


@dataclass(frozen=True)
class Process:
    pid: int


@dataclass(frozen=True)
class EventData:
    eventType: int
    eventData: int


@dataclass
class EventSet:
    uuid: str = ""
    seen: int = field(default=0)


def _gpus() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(os.environ[STATE]).read_text())
    return found


def _gpu(uuid: str) -> dict[str, Any]:
    for gpu in _gpus():
        if gpu["uuid"] == uuid:
            if gpu.get("lost"):
                raise NVMLError(NVML_ERROR_GPU_IS_LOST)
            return gpu
    raise NVMLError(NVML_ERROR_NOT_FOUND)


def nvmlInit() -> None:
    if not _gpus():
        raise NVMLError(NVML_ERROR_DRIVER_NOT_LOADED)


def nvmlShutdown() -> None:
    pass


def nvmlDeviceGetCount() -> int:
    return len(_gpus())


def nvmlDeviceGetHandleByIndex(index: int) -> str:
    return str(_gpus()[index]["uuid"])


def nvmlDeviceGetHandleByUUID(uuid: str) -> str:
    return str(_gpu(uuid)["uuid"])


def nvmlDeviceGetName(handle: str) -> str:
    return str(_gpu(handle).get("name", "NVIDIA H200"))


def nvmlDeviceGetUUID(handle: str) -> str:
    return handle


def nvmlDeviceGetCudaComputeCapability(handle: str) -> tuple[int, int]:
    return 9, 0


def nvmlDeviceGetComputeRunningProcesses(handle: str) -> list[Process]:
    return [Process(pid) for pid in _gpu(handle).get("processes", ())]


def nvmlDeviceGetTotalEccErrors(handle: str, kind: int, counter: int) -> int:
    if "uncorrected" not in _gpu(handle):
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return int(_gpu(handle)["uncorrected"])


def nvmlDeviceGetRemappedRows(handle: str) -> tuple[int, int, int, int]:
    return 0, 0, 0, int(_gpu(handle).get("broken_rows", 0))


def nvmlEventSetCreate() -> EventSet:
    return EventSet()


def nvmlDeviceRegisterEvents(handle: str, kinds: int, events: EventSet) -> None:
    events.uuid, events.seen = handle, len(_gpu(handle).get("xids", ()))


def nvmlEventSetWait_v2(events: EventSet, milliseconds: int) -> EventData:
    xids = _gpu(events.uuid).get("xids", ())
    if events.seen >= len(xids):
        raise NVMLError(NVML_ERROR_TIMEOUT)
    events.seen += 1
    return EventData(nvmlEventTypeXidCriticalError, int(xids[events.seen - 1]))


def nvmlEventSetFree(events: EventSet) -> None:
    pass


def __getattr__(name: str) -> Any:
    """Questions that this stand-in knows nothing of."""
    if not name.startswith("nvml"):
        raise AttributeError(name)

    def unsupported(*_: object) -> None:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)

    return unsupported
