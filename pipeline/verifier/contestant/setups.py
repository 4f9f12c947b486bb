"""`CppExtension` and `CUDAExtension` as build requests: what `BuildExtension` would compile."""

from __future__ import annotations

import shlex
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

TORCH_LIBRARIES = frozenset({"c10", "torch", "torch_cpu", "torch_python", "cudart", "c10_cuda", "torch_cuda"})
"""The libraries of torch that the builder links by itself."""


def request_of(
    extension: Any, *, include_paths: Sequence[str], library_paths: Sequence[str]
) -> dict[str, Any]:
    """The request of one extension (a `setuptools.Extension`), without its sources.

    `include_paths` and `library_paths`: torch's and CUDA's own, which the builder adds by itself. Raises
    RuntimeError for what is not supported.
    """
    given = extension.extra_compile_args or []
    flags = given if isinstance(given, Mapping) else {"cxx": given, "nvcc": given}
    if "nvcc_dlink" in flags or extension.extra_objects:
        raise RuntimeError("device linking and object files are not supported here")
    defines = [
        f"-D{name}" if value is None else f"-D{name}={value}" for name, value in extension.define_macros
    ]
    defines += [f"-U{name}" for name in extension.undef_macros]
    libraries = [name for name in extension.libraries if name not in TORCH_LIBRARIES]
    link = [
        *(f"-L{path}" for path in _others(extension.library_dirs, library_paths)),
        *(f"-Wl,-rpath,{path}" for path in extension.runtime_library_dirs),
        *(f"-l{name}" for name in libraries),
        *(extension.extra_link_args or ()),
    ]
    return {
        "name": extension.name.rpartition(".")[2],
        "cpp_sources": [],
        "cuda_sources": [],
        "extra_cflags": _quoted([*_pythons_flags(), *defines, *flags.get("cxx", ())]),
        "extra_cuda_cflags": _quoted([*defines, *flags.get("nvcc", ())]),
        "extra_ldflags": _quoted(link),
        "extra_include_paths": _others(extension.include_dirs, include_paths),
        "with_cuda": "cudart" in extension.libraries,
        "no_implicit_headers": True,
    }


def _pythons_flags() -> list[str]:
    """setuptools gives the flags that Python was compiled with: those that decide how fast code is."""
    given = shlex.split(sysconfig.get_config_var("CFLAGS") or "")
    return [flag for flag in given if flag.startswith("-O") or flag in ("-DNDEBUG", "-fwrapv")]


def _others(given: Iterable[Any], known: Sequence[str]) -> list[str]:
    return [str(path) for path in given if Path(path) not in map(Path, known)]


def _quoted(words: Iterable[Any]) -> list[str]:
    """setuptools takes each as one word, the builder splits them as a shell does."""
    return [shlex.quote(str(word)) for word in words]
