"""What a candidate's calls ask for, as build requests. Standard library only.

`load_inline` is here by itself, because both sides read its calls: the contestant when one is made, the
orchestrator when the source shows beforehand what one will say.
"""

from __future__ import annotations

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
) -> dict[str, Any]:
    """The request of `torch.utils.cpp_extension.load_inline` with these arguments, which are torch's.

    Where the files go and how much is printed is ours. Raises RuntimeError for what is not supported.
    """
    if sycl_sources or with_sycl:
        raise RuntimeError("SYCL sources are not supported here")
    cuda = _texts(cuda_sources)
    return {
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
