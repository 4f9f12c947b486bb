"""What this machine is, as far as it decides whether two times may be compared; its state right now, and the
libraries that this process has loaded.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import torch

from kernelproof.hashing import sha256_text
from kernelproof.types import Environment, GpuInfo
from kernelproof.version import __version__

Readings = dict[str, float | int | str | None]


@functools.lru_cache(maxsize=8)
def describe_environment(device: torch.device) -> Environment:
    """The environment of a verification on `device`."""
    return Environment(
        kernelproof=__version__,
        python=platform.python_version(),
        torch=torch.__version__,
        cuda=torch.version.cuda,
        driver=_driver() if device.type == "cuda" else None,
        nvcc=_last_line("nvcc"),
        cxx=_first_line("c++"),
        platform=f"{platform.system()} {platform.release()} {' '.join(platform.libc_ver())}".strip(),
        cpu=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=psutil.virtual_memory().total,
        host_sha256=sha256_text(_machine_id()),
        gpu=_gpu(device) if device.type == "cuda" else None,
    )


def read_state(device: torch.device) -> Readings:
    """Clocks, temperature, power, throttle reasons and other users of a GPU; load averages of a CPU."""
    if device.type != "cuda":
        one, five, _ = os.getloadavg()
        frequency = psutil.cpu_freq()
        return {"load_1m": one, "load_5m": five, "cpu_mhz": frequency.current if frequency else None}
    import pynvml

    handle = nvml_handle(device)
    return {
        "sm_clock_mhz": quiet(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
        "memory_clock_mhz": quiet(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_MEM),
        "temperature_c": quiet(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
        "memory_temperature_c": _memory_temperature(handle),
        "power_mw": quiet(pynvml.nvmlDeviceGetPowerUsage, handle),
        "throttle_reasons": quiet(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
    }


def _memory_temperature(handle: object) -> int | None:
    """Degrees Celsius: hot memory is refreshed more often, and slower for that, at the same clock."""
    import pynvml

    found = quiet(pynvml.nvmlDeviceGetFieldValues, handle, [pynvml.NVML_FI_DEV_MEMORY_TEMP])
    if found is None or found[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return None
    return int(found[0].value.uiVal)


@functools.lru_cache(maxsize=8)  # each question to the driver waits for whoever makes a context
def nvml_handle(device: torch.device) -> object:
    """NVML's handle of the GPU that torch calls `device`, whatever order each counts in."""
    import pynvml

    pynvml.nvmlInit()
    uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
    return pynvml.nvmlDeviceGetHandleByUUID(uuid)


@functools.lru_cache(maxsize=8)
def minor_number(device: torch.device) -> int:
    """N of the GPU's device node `/dev/nvidiaN`: what a sandbox must be given."""
    import pynvml

    return int(pynvml.nvmlDeviceGetMinorNumber(nvml_handle(device)))


def _gpu(device: torch.device) -> GpuInfo:
    import pynvml

    handle = nvml_handle(device)
    properties = torch.cuda.get_device_properties(device)
    ecc = quiet(pynvml.nvmlDeviceGetEccMode, handle)
    mig = quiet(pynvml.nvmlDeviceGetMigMode, handle)
    limit = quiet(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    board = quiet(pynvml.nvmlDeviceGetBoardPartNumber, handle)
    vbios = quiet(pynvml.nvmlDeviceGetVbiosVersion, handle)
    clock = quiet(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_SM)
    return GpuInfo(
        index=device.index or 0,
        name=properties.name,
        uuid=f"GPU-{properties.uuid}",
        capability=f"{properties.major}.{properties.minor}",
        memory_bytes=properties.total_memory,
        sm_count=properties.multi_processor_count,
        l2_bytes=properties.L2_cache_size,
        board=board if isinstance(board, str) else None,
        vbios=vbios if isinstance(vbios, str) else None,
        ecc=bool(ecc[0]) if isinstance(ecc, list | tuple) else None,
        mig=bool(mig[0]) if isinstance(mig, list | tuple) else None,
        power_limit_w=limit / 1000 if isinstance(limit, int) else None,
        max_sm_clock_mhz=clock if isinstance(clock, int) else None,
    )


def _driver() -> str | None:
    import pynvml

    pynvml.nvmlInit()
    version = quiet(pynvml.nvmlSystemGetDriverVersion)
    return version if isinstance(version, str) else None


def quiet(function: Callable[..., Any], *arguments: object) -> Any:
    """NVML's answer, or None where this GPU or driver does not support the question."""
    import pynvml

    try:
        return function(*arguments)
    except pynvml.NVMLError:
        return None


def _tool_output(tool: str) -> list[str]:
    path = shutil.which(tool)
    if path is None and tool == "nvcc":
        found = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / "nvcc"
        path = str(found) if found.exists() else None
    if path is None:
        return []
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False)
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def _first_line(tool: str) -> str | None:
    return next(iter(_tool_output(tool)), None)


def _last_line(tool: str) -> str | None:
    return next(reversed(_tool_output(tool)), None)


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text().strip() or platform.node()
    except OSError:
        return platform.node()


def loaded_files() -> list[Path]:
    """Each once, in the order of their addresses."""
    lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    columns = (line.split(maxsplit=5) for line in lines)
    return [Path(path) for path in dict.fromkeys(c[5] for c in columns if len(c) > 5) if path.startswith("/")]
