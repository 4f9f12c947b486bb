"""What this machine compiles with: torch's headers and flags, compilers, ninja, the target architecture.

`HEADER_STUBS` stand in for headers of CUDA's mathematical libraries, for toolkits that hold compiler and
runtime only: torch's CUDA headers include them for a few type names. A candidate that only needs a stream or
a guard can so be compiled where the libraries are missing; one that calls the libraries cannot, and its
build says so. They are used only with a CPU build of torch, where nothing that is compiled is ever loaded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kernelproof.errors import MachineError, UsageError
from kernelproof.hashing import sha256_json, sha256_text
from kernelproof.types.record import FrozenRecord
from kernelproof.verifier.sandbox import Job, Limits
from kernelproof.workspace import write_in_one_step

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


TOOLCHAIN_FORMAT = 1
"""Raise it when a field is added: remembered facts of an older format are learnt again."""

_TORCH_FACTS = """
import inspect, json, re, sysconfig
from pathlib import Path
import torch
from torch.utils import cpp_extension
standard = re.search(r"'-fPIC', '-std=([a-z0-9+]+)'", inspect.getsource(cpp_extension))
print(json.dumps({
    "torch": torch.__version__,
    "torch_git": torch.version.git_version,
    "torch_cuda": torch.version.cuda,
    "torch_root": str(Path(torch.__file__).parent),
    "torch_includes": cpp_extension.include_paths(),
    "cxx_standard": standard.group(1) if standard else "c++17",
    "nvcc_defaults": list(cpp_extension.COMMON_NVCC_FLAGS),
    "python_include": sysconfig.get_path("include", scheme="posix_prefix"),
    "extension_suffix": sysconfig.get_config_var("EXT_SUFFIX"),
}))
"""


class Toolchain(FrozenRecord):
    """Everything about this machine that decides what a compilation yields."""

    format: int = TOOLCHAIN_FORMAT
    python: str
    """The interpreter whose torch the extensions are for."""
    python_include: str
    extension_suffix: str
    """`.cpython-311-x86_64-linux-gnu.so`: names the interpreter's binary interface."""
    torch: str
    torch_git: str | None = None
    torch_cuda: str | None = None
    """The CUDA version torch was built with; None for a CPU build."""
    torch_root: str
    """The installed package's directory."""
    torch_includes: tuple[str, ...]
    cxx_standard: str
    """The language standard this torch compiles extensions with: `c++17`, `c++20`."""
    nvcc_defaults: tuple[str, ...] = ()
    """The flags this torch gives every nvcc."""
    cxx: str | None = None
    """The C++ compiler (`$CXX`, else `c++`); None when there is none."""
    cxx_version: str | None = None
    """First line of its `--version`."""
    ccbin: str | None = None
    """`$CC`: nvcc's host compiler, as torch passes it."""
    nvcc: str | None = None
    nvcc_version: str | None = None
    """`release 13.0, V13.0.88`."""
    cuda_home: str | None = None
    """The toolkit's directory, as nvcc itself reports it."""
    absent_headers: tuple[str, ...] = ()
    """Headers of CUDA libraries that torch includes and this toolkit lacks (`header_stubs.HEADER_STUBS`)."""
    ninja: str | None = None
    nvcc_codes: tuple[str, ...] = ()
    """What nvcc can compile for: `sm_75`, `sm_90`, `sm_90a` ..."""
    architecture: str = DEFAULT_ARCHITECTURE
    """The GPU compiled for, as its compute capability: `9.0`."""
    cpu: str = ""
    """Hash of the CPU's model and instruction sets: what `-march=native` means here."""

    def lacks(self, *, cuda: bool) -> str | None:
        """What is missing for a build with or without CUDA, and how to get it; None when nothing is."""
        if not _is_program(self.cxx):
            named = os.environ.get("CXX")
            what = f"CXX names no program here ({named})" if named else "No C++ compiler"
            return f"{what}: install one (Debian and Ubuntu: apt install g++) or set CXX."
        if not Path(self.python_include, "Python.h").is_file():
            return (
                f"Python's headers are missing ({self.python_include}/Python.h): install them "
                "(Debian and Ubuntu: apt install python3-dev)."
            )
        if not _is_program(self.ninja):
            return "No ninja: pip install ninja."
        if cuda and not _is_program(self.nvcc):
            wanted = f"CUDA toolkit {self.torch_cuda}" if self.torch_cuda else "CUDA toolkit"
            return (
                f"No nvcc: install the {wanted} (https://developer.nvidia.com/cuda-downloads) and put "
                "nvcc on PATH or set CUDA_HOME."
            )
        if cuda and not self.gencode:
            return (
                f"nvcc ({self.nvcc_version}) no longer compiles for compute capability {self.architecture}: "
                f"install an older CUDA toolkit or set {ARCHITECTURE_VARIABLE}."
            )
        return None

    @property
    def capability(self) -> tuple[int, int]:
        """The target architecture as torch names it: major and minor."""
        major, minor = self.architecture.rstrip("abcdefghijklmnopqrstuvwxyz").split(".")
        return int(major), int(minor)

    @property
    def gencode(self) -> tuple[str, ...]:
        """nvcc's flags for the target architecture; empty when this nvcc cannot serve it."""
        return gencode(self.architecture, self.nvcc_codes)

    @property
    def read_only_paths(self) -> tuple[Path, ...]:
        """What a compilation must be able to read besides /usr and its scratch directory."""
        candidates = [
            *map(Path, self.torch_includes),
            Path(self.torch_root, "lib"),
            Path(self.python_include),
            *([Path(self.cuda_home)] if self.cuda_home else []),
            *([Path(self.ninja)] if self.ninja else []),
            *([installation(Path(self.cxx))] if self.cxx else []),
            *([installation(Path(self.ccbin))] if self.ccbin else []),
        ]
        wanted = sorted({path for path in candidates if path.exists() and not path.is_relative_to("/usr")})
        return tuple(path for path in wanted if not any(path != p and path.is_relative_to(p) for p in wanted))

    def job(self, command: tuple[str, ...], scratch: Path, limits: Limits) -> Job:
        """A sandbox's job that runs a compiler or ninja over `scratch`, and sees nothing else of the host."""
        env = {"PATH": self.search_path, "LC_ALL": "C.UTF-8"}
        return Job(command, scratch, read_only=self.read_only_paths, env=env, limits=limits)

    @property
    def search_path(self) -> str:
        """`PATH` of a compilation: where the compilers are, then the system's directories."""
        tools = [str(Path(tool).parent) for tool in (self.cxx, self.nvcc) if tool]
        return os.pathsep.join(dict.fromkeys([*tools, "/usr/local/bin", "/usr/bin", "/bin"]))

    @property
    def identity(self) -> dict[str, Any]:
        """What of this decides a build's output and does not show in its command lines."""
        return {
            "torch": [self.torch, self.torch_git, self.torch_cuda],
            "extension_suffix": self.extension_suffix,
            "cxx": self.cxx_version,
            "nvcc": self.nvcc_version,
        }


def learn_toolchain(cache_dir: Path) -> Toolchain:
    """The toolchain of this interpreter and machine; facts that take seconds to learn are kept in
    `cache_dir`.

    torch is imported in a process of its own, once for each interpreter, torch and set of compilers.
    Raises MachineError when torch is missing or cannot be imported; UsageError when
    `KERNELPROOF_CUDA_ARCH` is malformed.
    """
    tools = find_tools()
    remembered = cache_dir / "toolchains" / f"{_fingerprint(tools)}.json"
    try:
        toolchain = Toolchain.model_validate_json(remembered.read_bytes())
    except (OSError, ValueError):
        toolchain = _learn(tools)
        with suppress(OSError):  # a cache that cannot be written only costs time at the next start
            remembered.parent.mkdir(parents=True, exist_ok=True)
            write_in_one_step(remembered, toolchain.model_dump_json(indent=1).encode())
    return toolchain.model_copy(update={"architecture": target_architecture(), "cpu": cpu_identity()})


def _fingerprint(tools: Tools) -> str:
    """Hash of what the remembered facts depend on: paths, sizes and times of interpreter, torch and tools."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise MachineError(f"torch is not installed for {sys.executable}: pip install torch")
    files = [sys.executable, str(Path(spec.origin).with_name("version.py")), *tools.paths]
    stats = [(path, Path(path).stat()) for path in files]
    seen = [(path, status.st_mtime_ns, status.st_size) for path, status in stats]
    return sha256_json([TOOLCHAIN_FORMAT, seen, tools.ccbin])


def _learn(tools: Tools) -> Toolchain:
    toolkit = describe_nvcc(tools.nvcc) if tools.nvcc else None
    return Toolchain(
        python=sys.executable,
        cxx=tools.cxx,
        cxx_version=version_line(tools.cxx) if tools.cxx else None,
        ccbin=tools.ccbin,
        nvcc=toolkit.nvcc if toolkit else None,
        nvcc_version=toolkit.version if toolkit else None,
        nvcc_codes=toolkit.codes if toolkit else (),
        cuda_home=toolkit.home if toolkit else None,
        absent_headers=_absent_headers(toolkit) if toolkit else (),
        ninja=tools.ninja,
        **_torch_facts(),
    )


def _is_program(path: str | None) -> bool:
    return path is not None and os.access(path, os.X_OK)


def _absent_headers(toolkit: CudaToolkit) -> tuple[str, ...]:
    folder = Path(toolkit.home, "include")
    return tuple(header for header in HEADER_STUBS if not (folder / header).exists())


def _torch_facts() -> dict[str, Any]:
    """Ask the installed torch, in a process of its own: ours must not pay for the import."""
    command = [sys.executable, "-P", "-c", _TORCH_FACTS]
    finished = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if finished.returncode != 0:
        raise MachineError(
            f"torch cannot be imported by {sys.executable}:\n{finished.stderr.strip()[-2000:]}"
        )
    facts: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return facts


HEADER_STUBS = {
    "cublas_v2.h": "typedef struct cublasContext* cublasHandle_t;\ntypedef int cublasStatus_t;\n",
    "cublasLt.h": "typedef struct cublasLtContext* cublasLtHandle_t;\n",
    "cusparse.h": "typedef struct cusparseContext* cusparseHandle_t;\ntypedef int cusparseStatus_t;\n",
    "cusolver_common.h": "typedef int cusolverStatus_t;\n",
    "cusolverDn.h": "typedef struct cusolverDnContext* cusolverDnHandle_t;\n",
}
"""Header name to the declarations that torch's own headers need of it."""
