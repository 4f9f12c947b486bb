"""What a candidate's calls ask for, as build requests. Standard library only.

The contestant and the light runner, which has no torch, read the calls alike.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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
