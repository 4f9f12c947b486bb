"""What this machine compiles with: torch's headers and flags, compilers, ninja, the target architecture."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kernelproof.errors import MachineError
from kernelproof.hashing import sha256_json
from kernelproof.types.record import FrozenRecord
from kernelproof.verifier.build import machine
from kernelproof.verifier.build.header_stubs import HEADER_STUBS
from kernelproof.verifier.sandbox import Job, Limits

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
    architecture: str = machine.DEFAULT_ARCHITECTURE
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
                f"install an older CUDA toolkit or set {machine.ARCHITECTURE_VARIABLE}."
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
        return machine.gencode(self.architecture, self.nvcc_codes)

    @property
    def read_only_paths(self) -> tuple[Path, ...]:
        """What a compilation must be able to read besides /usr and its scratch directory."""
        candidates = [
            *map(Path, self.torch_includes),
            Path(self.torch_root, "lib"),
            Path(self.python_include),
            *([Path(self.cuda_home)] if self.cuda_home else []),
            *([Path(self.ninja)] if self.ninja else []),
            *([machine.installation(Path(self.cxx))] if self.cxx else []),
            *([machine.installation(Path(self.ccbin))] if self.ccbin else []),
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
    tools = machine.find_tools()
    remembered = cache_dir / "toolchains" / f"{_fingerprint(tools)}.json"
    try:
        toolchain = Toolchain.model_validate_json(remembered.read_bytes())
    except (OSError, ValueError):
        toolchain = _learn(tools)
        _remember(remembered, toolchain)
    return toolchain.model_copy(
        update={"architecture": machine.target_architecture(), "cpu": machine.cpu_identity()}
    )


def _fingerprint(tools: machine.Tools) -> str:
    """Hash of what the remembered facts depend on: paths, sizes and times of interpreter, torch and tools."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise MachineError(f"torch is not installed for {sys.executable}: pip install torch")
    files = [sys.executable, str(Path(spec.origin).with_name("version.py")), *tools.paths]
    stats = [(path, Path(path).stat()) for path in files]
    seen = [(path, status.st_mtime_ns, status.st_size) for path, status in stats]
    return sha256_json([TOOLCHAIN_FORMAT, seen, tools.ccbin])


def _learn(tools: machine.Tools) -> Toolchain:
    toolkit = machine.describe_nvcc(tools.nvcc) if tools.nvcc else None
    return Toolchain(
        python=sys.executable,
        cxx=tools.cxx,
        cxx_version=machine.version_line(tools.cxx) if tools.cxx else None,
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


def _absent_headers(toolkit: machine.CudaToolkit) -> tuple[str, ...]:
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


def _remember(path: Path, toolchain: Toolchain) -> None:
    """Write in one step; a cache that cannot be written only costs time at the next start."""
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(toolchain.model_dump_json(indent=1))
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
