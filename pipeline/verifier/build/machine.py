"""Finding compilers, ninja and the GPU's architecture on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_text

ARCHITECTURE_VARIABLE = "KERNELPROOF_CUDA_ARCH"
DEFAULT_ARCHITECTURE = "9.0"
"""Compiled for when there is neither a GPU nor a wish: Hopper (H100, H200)."""


@dataclass(frozen=True)
class Tools:
    """Absolute paths of the programs found; None for those that are not there."""

    cxx: str | None
    ccbin: str | None
    nvcc: str | None
    ninja: str | None

    @property
    def paths(self) -> list[str]:
        """The compilers and tools that are there."""
        return [path for path in (self.cxx, self.nvcc, self.ninja) if path]


@dataclass(frozen=True)
class CudaToolkit:
    """One CUDA toolkit, as its nvcc describes it."""

    home: str
    nvcc: str
    version: str
    codes: tuple[str, ...]
    """`sm_75`, `sm_90` ...: what it can compile for."""


def find_tools() -> Tools:
    """The compilers torch would use: `$CXX` or `c++`, `$CC` for nvcc, nvcc of `$CUDA_HOME` or on PATH."""
    return Tools(
        cxx=shutil.which(os.environ.get("CXX") or "c++"),
        ccbin=shutil.which(os.environ["CC"]) if os.environ.get("CC") else None,
        nvcc=_find_nvcc(),
        ninja=_find_ninja(),
    )


def _find_nvcc() -> str | None:
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    places = [str(Path(home, "bin", "nvcc")) for home in homes if home]
    for place in [*places, "nvcc", "/usr/local/cuda/bin/nvcc"]:
        if found := shutil.which(place):
            return found
    return None


def _find_ninja() -> str | None:
    """The ninja package's own binary, which need not be on PATH; else one on PATH."""
    try:
        from ninja import BIN_DIR
    except ImportError:
        return shutil.which("ninja")
    packaged = Path(BIN_DIR, "ninja")
    return str(packaged) if packaged.is_file() else shutil.which("ninja")


def version_line(compiler: str) -> str | None:
    """First line of `compiler --version`; None when it does not say."""
    lines = _output([compiler, "--version"]).splitlines()
    return lines[0].strip() if lines else None


def describe_nvcc(nvcc: str) -> CudaToolkit | None:
    """The toolkit behind `nvcc`, which may be a wrapper script anywhere; None when it does not work.

    nvcc prints the directory it takes its headers from (`TOP`) when asked what it would do.
    """
    top = re.search(r"^#\$ TOP=(.+)$", _output([nvcc, "-dryrun", "-x", "cu", os.devnull]), re.MULTILINE)
    release = re.search(r"release [^\n]+", _output([nvcc, "--version"]))
    if top is None or release is None:
        return None
    home = Path(os.path.normpath(top.group(1).strip()))
    return CudaToolkit(
        home=str(home),
        nvcc=str(home / "bin" / "nvcc"),
        version=release.group(0),
        codes=tuple(_output([nvcc, "--list-gpu-code"]).split()),
    )


def target_architecture() -> str:
    """The compute capability to compile for: `$KERNELPROOF_CUDA_ARCH`, else the first GPU's, else 9.0.

    Raises UsageError when the variable is not of the form `9.0` or `9.0a`.
    """
    wished = os.environ.get(ARCHITECTURE_VARIABLE)
    if not wished:
        return _gpu_capability() or DEFAULT_ARCHITECTURE
    if not re.fullmatch(r"\d{1,2}\.\d[af]?", wished):
        raise UsageError(
            f"{ARCHITECTURE_VARIABLE}={wished!r} is not a compute capability; write it as 9.0 or 9.0a"
        )
    return wished


def _gpu_capability() -> str | None:
    """The first GPU's compute capability as its driver says; None without a GPU or driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(pynvml.nvmlDeviceGetHandleByIndex(0))
        return f"{major}.{minor}"
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def gencode(architecture: str, codes: tuple[str, ...]) -> tuple[str, ...]:
    """nvcc's flags for one architecture.

    An nvcc older than the GPU gets the newest architecture it knows below it, as PTX that the driver
    compiles: its machine code would not run there. Empty when `codes`, what nvcc can compile for, holds
    none that serves: the GPU is older than all of them.
    """
    number = architecture.replace(".", "")
    wanted = int(re.sub(r"\D", "", number))
    known = [int(code[3:]) for code in codes if re.fullmatch(r"sm_\d+", code)]
    if wanted in known:
        return (f"-gencode=arch=compute_{number},code=sm_{number}",)
    nearest = max((number for number in known if number < wanted), default=None)
    return (f"-gencode=arch=compute_{nearest},code=compute_{nearest}",) if nearest else ()


def cpu_identity() -> str:
    """Hash of the CPU's model and instruction sets: what `-march=native` compiles for."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    first = text.split("\n\n", 1)[0].splitlines()
    kept = [line for line in first if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return sha256_text("\n".join(kept))


def installation(program: Path) -> Path:
    """The directory a compiler outside /usr needs to work: its prefix, but never a whole home directory."""
    folder = program.resolve().parent
    prefix = folder.parent
    return folder if prefix in (Path.home(), Path("/"), Path("/home")) else prefix


def _output(command: list[str]) -> str:
    """What a trusted tool prints, both streams; empty when it cannot be run."""
    try:
        finished = subprocess.run(
            command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return finished.stdout + finished.stderr
