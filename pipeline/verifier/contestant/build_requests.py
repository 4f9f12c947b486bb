"""What a candidate's calls ask for, as build requests. Standard library only.

`load_inline` and `load` read the calls alike in the contestant and in the light runner, which has no torch.
`request_of` turns a `CppExtension` or `CUDAExtension` into what `BuildExtension` would compile.
"""

from __future__ import annotations

import os
import shlex
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> tuple[dict[str, Any], str | None]:
    """The request of `torch.utils.cpp_extension.load_inline` with these arguments, which are torch's, and the
    folder where its sources would lie.

    Where the files go and how much is printed is ours. Raises RuntimeError for what is not supported.
    """
    if sycl_sources or with_sycl:
        raise RuntimeError("SYCL sources are not supported here")
    cuda = _texts(cuda_sources)
    request = {
        "name": name,
        "cpp_sources": _texts(cpp_sources),
        "cuda_sources": cuda,
        "functions": _functions(functions),
        "extra_cflags": list(extra_cflags or ()),
        "extra_cuda_cflags": list(extra_cuda_cflags or ()),
        "extra_ldflags": list(extra_ldflags or ()),
        "extra_include_paths": [str(item) for item in extra_include_paths or ()],
        "with_cuda": bool(cuda) if with_cuda is None else with_cuda,
        "is_python_module": is_python_module,
        "with_pytorch_error_handling": with_pytorch_error_handling,
        "no_implicit_headers": no_implicit_headers,
    }
    return request, build_directory


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> tuple[dict[str, Any], Sequence[str | os.PathLike[str]]]:
    """The request of `torch.utils.cpp_extension.load` with these arguments, and the files to compile.

    Raises RuntimeError for what is not supported.
    """
    if is_standalone or with_sycl:
        raise RuntimeError("standalone programs and SYCL are not supported here")
    request, _ = load_inline(
        name,
        [],
        extra_cflags=extra_cflags,
        extra_cuda_cflags=extra_cuda_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        with_cuda=with_cuda,
        is_python_module=is_python_module,
        no_implicit_headers=True,
    )
    return request, [sources] if isinstance(sources, str | os.PathLike) else sources


def _texts(value: str | Sequence[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(item) for item in value]


def _functions(value: str | Sequence[str] | Mapping[str, str] | None) -> dict[str, str] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return {value: value}
    if isinstance(value, Mapping):
        return {str(k): str(v) for k, v in value.items()}
    return {str(item): str(item) for item in value}


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


def _others(paths: Iterable[Any], known: Sequence[str]) -> list[str]:
    return [str(path) for path in paths if Path(path) not in map(Path, known)]


def _quoted(words: Iterable[Any]) -> list[str]:
    """setuptools takes each as one word, the builder splits them as a shell does."""
    return [shlex.quote(str(word)) for word in words]
