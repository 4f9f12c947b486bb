"""Inline extensions inside the sandbox: the candidate's `load_inline` asks for a build over the wire.

There is no compiler in the contestant's sandbox. The runner replaces `load_inline` and `load` of
`torch.utils.cpp_extension` by functions that send the sources out, get the finished library as a
descriptor, and import it, with the semantics and the errors of torch's own.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.utils.cpp_extension as torch_cpp_extension

from pipeline.contestant import requests

Ask = Callable[[dict[str, Any]], tuple[dict[str, Any], int | None]]
"""Sends a build request; returns the reply and the library's descriptor."""

BUILT: dict[str, list[Path]] = {}
"""Name of each extension that was built in this process, to its libraries: what the profiler looks for."""

_CUDA_SUFFIXES = (".cu", ".cuh")


class ExtensionLoader:
    """Serves the candidate's extension calls; each distinct request is asked for once in a process."""

    def __init__(self, ask: Ask, directory: Path) -> None:
        self._ask = ask
        self._directory = directory
        self._count = 0

    def install(self) -> None:
        """Replaces torch's functions. Candidates that import them by name get ours too."""
        torch_cpp_extension.load_inline = self.load_inline
        torch_cpp_extension.load = self.load

    def load_inline(self, *arguments: Any, **options: Any) -> Any:
        """As `torch.utils.cpp_extension.load_inline`; where the files go and how much is printed is ours."""
        return self._serve(requests.load_inline(*arguments, **options))

    def load(
        self,
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
    ) -> Any:
        """As `torch.utils.cpp_extension.load`, for sources the candidate wrote to its scratch directory."""
        if is_standalone or with_sycl:
            raise RuntimeError("standalone programs and SYCL are not supported here")
        files = [Path(item) for item in ([sources] if isinstance(sources, str) else sources)]
        cuda = [item.read_text() for item in files if item.suffix in _CUDA_SUFFIXES]
        return self.load_inline(
            name,
            [item.read_text() for item in files if item.suffix not in _CUDA_SUFFIXES],
            cuda,
            extra_cflags=extra_cflags,
            extra_cuda_cflags=extra_cuda_cflags,
            extra_ldflags=extra_ldflags,
            extra_include_paths=extra_include_paths,
            with_cuda=with_cuda,
            is_python_module=is_python_module,
            no_implicit_headers=True,
        )

    def _serve(self, request: dict[str, Any]) -> Any:
        name = str(request["name"])
        reply, descriptor = self._ask(request)
        if descriptor is None:
            raise RuntimeError(f"Error building extension '{name}': {reply.get('log', '')}")
        try:
            self._count += 1
            place = self._directory / f"{name}_{self._count}"
            place.mkdir(parents=True)
            library = place / f"{name}.so"
            _copy(descriptor, library)
            BUILT.setdefault(name, []).append(library)
        finally:
            os.close(descriptor)
        if not request["is_python_module"]:
            torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
            return str(library)
        return _import(name, library)


def _import(name: str, library: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, library)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module can be loaded from {library}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _copy(descriptor: int, target: Path) -> None:
    with open(descriptor, "rb", closefd=False) as source, target.open("wb") as sink:
        while chunk := source.read(1 << 20):
            sink.write(chunk)
