"""Which device a backend runs on here. Asks the driver through NVML; torch is not needed.

A referee is started with its one GPU as the only visible one, named by UUID: whatever order CUDA counts in,
it is the one that was chosen, and a broken neighbour is never touched.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import dataclass

from kernelproof import backends
from kernelproof.errors import MachineError
from kernelproof.types import Quarantine
from kernelproof.verifier.devices import quarantine

VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
_ASK_DRIVER = """
import ctypes
cuda, count, uuid = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), (ctypes.c_ubyte * 16)()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
for place in range(count.value):
    assert cuda.cuDeviceGetUuid(ctypes.byref(uuid), place) == 0
    print(bytes(uuid).hex())
"""


@dataclass(frozen=True)
class Gpu:
    """A GPU that this process may use."""

    uuid: str
    """`GPU-...`, as the driver names it."""
    name: str
    index: int
    """The GPU's number in nvidia-smi."""

    def __str__(self) -> str:
        return f"GPU {self.index} ({self.name}, {self.uuid})"


@functools.cache
def gpus() -> tuple[Gpu, ...]:
    """GPUs that the driver offers this process, in CUDA's order; empty without a driver."""
    return visible_gpus(_in_cuda_order(installed()), os.environ.get(VISIBLE))


def default_backend() -> str:
    """The first of our backends whose device is here: `cuda` where there is a GPU, else `cpp`."""
    here = [each.name for each in backends.our_backends() if gpus() or not each.on_gpu]
    return here[0]


def device_for(backend: str) -> str | None:
    """`cuda:0` (a referee sees one GPU alone) or `cpu`; None when the backend's device is not there.

    Raises MachineError when there are GPUs and all are quarantined, or a package is missing.
    """
    wanted = backends.backend(backend)
    if not wanted.on_gpu or interprets(backend):
        return "cpu"
    if gpus() and not wanted.is_installed:
        raise MachineError(wanted.missing)
    return "cuda:0" if gpus() and require_gpu() else None


def interprets(backend: str) -> bool:
    """Whether a backend's kernels are interpreted here: right or wrong, and never timed."""
    return backends.backend(backend).interpretable and not gpus()


def require_gpu() -> Gpu:
    """The first GPU that is not quarantined. Raises MachineError, naming the GPUs and what they have."""
    gpu = chosen_gpu()
    if gpu is None:
        known = [f"{gpu} is quarantined: {record.reason}" for gpu, record in quarantined()]
        why = "; ".join(known) or "there is none"
        raise MachineError(f"no healthy GPU is left. {why}. `kernelproof doctor` says what to do")
    return gpu


def chosen_gpu() -> Gpu | None:
    """The first GPU that is not quarantined; None when none is healthy."""
    return next(iter(fleet()), None)


def fleet() -> tuple[Gpu, ...]:
    """The GPUs that a run uses: the first that is not quarantined, and all such of its name.

    One run's times come from one kind of GPU; where there are others, `CUDA_VISIBLE_DEVICES` chooses.
    """
    fit = [gpu for gpu in gpus() if is_fit(gpu.uuid)]
    return tuple(gpu for gpu in fit if gpu.name == fit[0].name)


def quarantined() -> list[tuple[Gpu, Quarantine]]:
    """The GPUs that are not to be used, and why."""
    found = ((gpu, known_against(gpu.uuid)) for gpu in gpus())
    return [(gpu, record) for gpu, record in found if record is not None]


def is_fit(uuid: str) -> bool:
    """Whether nothing is known against a GPU."""
    return known_against(uuid) is None


def known_against(uuid: str) -> Quarantine | None:
    """The record that keeps a GPU from being used here."""
    return quarantine.find(uuid) or _set_aside.get(uuid)


_set_aside: dict[str, Quarantine] = {}
"""GPUs that failed their canary, where no record could be written: this process at least remembers."""


def set_aside(uuid: str, reason: str) -> None:
    """Makes sure that a GPU which a referee gave up is not chosen again."""
    if quarantine.find(uuid) is None:
        _set_aside[uuid] = Quarantine(uuid=uuid, reason=reason, since="in this run", pid=os.getpid())


def restore(uuid: str) -> str | None:
    """Lets a GPU be used again on this host; None, or why its record could not be removed."""
    _set_aside.pop(uuid, None)
    return quarantine.lift(uuid)


def environment_for(gpu: Gpu | None) -> dict[str, str]:
    """What a process needs in its environment to see this GPU alone, or none where none is healthy."""
    return {VISIBLE: gpu.uuid if gpu else ""} if gpus() else {}


def visible_gpus(ordered: tuple[Gpu, ...], visible: str | None) -> tuple[Gpu, ...]:
    """What `CUDA_VISIBLE_DEVICES=visible` leaves of `ordered` (as CUDA counts), in the order it says.

    Its entries are numbers or the beginnings of UUIDs. Entries after one that names no GPU are ignored (CUDA
    C++ Programming Guide, "CUDA Environment Variables"); where one is named twice CUDA offers none.
    """
    if visible is None:
        return ordered
    chosen: list[Gpu] = []
    for entry in (part.strip() for part in visible.split(",")):
        if entry.isdecimal():
            named = list(ordered[int(entry) :][:1])
        else:
            named = [gpu for gpu in ordered if entry and gpu.uuid.startswith(entry)]
        if len(named) != 1:
            break
        chosen += named
    return tuple(chosen) if len(set(chosen)) == len(chosen) else ()


@functools.cache
def installed() -> tuple[Gpu, ...]:
    """The GPUs as NVML counts them, by their place on the PCI bus; also those that CUDA is told to hide."""
    import pynvml

    try:
        pynvml.nvmlInit()
        found = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                name, uuid = pynvml.nvmlDeviceGetName(handle), pynvml.nvmlDeviceGetUUID(handle)
            except pynvml.NVMLError:  # it has fallen off the bus, or is not ours to use
                continue
            found.append(Gpu(uuid=str(uuid), name=str(name), index=index))
    except pynvml.NVMLError:
        return ()
    return tuple(found)


def minor_number(gpu: Gpu) -> int:
    """N of the GPU's device node `/dev/nvidiaN`: what a sandbox must be given."""
    import pynvml

    pynvml.nvmlInit()
    return int(pynvml.nvmlDeviceGetMinorNumber(pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)))


def _in_cuda_order(devices: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """As CUDA counts them: by PCI bus where asked to or where all are alike, else as the driver says."""
    if os.environ.get(ORDER) == "PCI_BUS_ID" or len({gpu.name for gpu in devices}) < 2:
        return devices
    environment = {name: value for name, value in os.environ.items() if name != VISIBLE}
    done = subprocess.run(
        [sys.executable, "-I", "-c", _ASK_DRIVER],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    places = done.stdout.split()
    by_hex = {gpu.uuid.removeprefix("GPU-").replace("-", ""): gpu for gpu in devices}
    return tuple(by_hex[place] for place in places if place in by_hex) or devices
