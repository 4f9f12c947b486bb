"""A candidate's builds inside the sandbox: extensions, and kernels that are compiled at their first call.

The runner replaces `load_inline`, `load` and what `BuildExtension` runs in `torch.utils.cpp_extension` by
functions that send the sources out and get the finished library as a descriptor, with the semantics and the
errors of torch's own (`ExtensionLoader`).

For kernels that are compiled at their first call, the backend's own part comes as the text of a program,
which defines a class `Inside` (`FirstCall` in `kernelproof.backends.interface`). The compiler's
output is packed in the build stage, and unpacked before the candidate is loaded where it is judged: the same
compiler finds it there by its content.
"""

from __future__ import annotations

import base64
import importlib.util
import io
import itertools
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.utils.cpp_extension as torch_cpp_extension

from kernelproof.verifier.contestant import build_requests
from kernelproof.verifier.contestant.build_requests import with_own_files

Ask = Callable[[dict[str, Any]], tuple[dict[str, Any], int | None]]
"""Sends a build request; returns the reply and the library's descriptor."""

BUILT: dict[str, list[Path]] = {}
"""Name of each extension that was built in this process, to its libraries: what the profiler looks for."""

_TOOLKIT = "/usr/local/cuda"
"""CUDA's place where torch knows none: `CUDAExtension` asks for it, the builder does without."""

PLACE = "first-calls"
"""The compiler's cache, in the working directory. A relative path: the cache names its files by it, and is
used in another directory."""
MAX_BYTES = 8 << 20
"""Most bytes of the packed cache. Kernels beyond it are compiled again at their first call."""


class ExtensionLoader:
    """Serves the candidate's extension calls; each distinct request is asked for once in a process."""

    def __init__(self, ask: Ask, directory: Path) -> None:
        self._ask = ask
        self._directory = directory
        self._numbers = itertools.count()

    def install(self) -> None:
        """Replaces torch's functions. Candidates that import them by name get ours too."""
        torch_cpp_extension.load_inline = self.load_inline
        torch_cpp_extension.load = self.load
        torch_cpp_extension.CUDA_HOME = torch_cpp_extension.CUDA_HOME or _TOOLKIT
        # Some versions make the class whole when somebody asks for it by its name, which takes time.
        command = getattr(torch_cpp_extension, "_BUILD_EXTENSION_CLASS", None)
        (command or torch_cpp_extension.BuildExtension).run = lambda command: self._run(command)

    def load_inline(self, *arguments: Any, **options: Any) -> Any:
        """As `torch.utils.cpp_extension.load_inline`; where the files go and how much is printed is ours."""
        request, directory = build_requests.load_inline(*arguments, **options)
        return self._loaded(with_own_files(request, machine=_machine(), directory=directory))

    def load(self, *arguments: Any, **options: Any) -> Any:
        """As `torch.utils.cpp_extension.load`, for sources that the candidate wrote to files."""
        request, sources = build_requests.load(*arguments, **options)
        return self._loaded(with_own_files(request, machine=_machine(), sources=sources))

    def _run(self, command: Any) -> None:
        """As `BuildExtension.run`: the libraries lie afterwards where setuptools would put them."""
        for extension in command.extensions or ():
            request = build_requests.request_of(
                extension,
                include_paths=torch_cpp_extension.include_paths("cuda"),
                library_paths=torch_cpp_extension.library_paths("cuda"),
            )
            request = with_own_files(request, machine=_machine(), sources=extension.sources)
            self._serve(request, Path(command.get_ext_fullpath(extension.name)).absolute())

    def _loaded(self, request: dict[str, Any]) -> Any:
        name = str(request["name"])
        place = self._directory / f"{name}_{next(self._numbers)}" / f"{name}.so"
        library, name = self._serve(request, place)
        if not request["is_python_module"]:
            torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
            return str(library)
        return _import(name, library)

    def _serve(self, request: dict[str, Any], library: Path) -> tuple[Path, str]:
        """Has the request built. The library lies at that path afterwards; the module's name in it is another
        one where the same was built before under that."""
        name = str(request["name"])
        reply, descriptor = self._ask(request)
        if descriptor is None:
            raise RuntimeError(f"Error building extension '{name}': {reply.get('log', '')}")
        try:
            library.parent.mkdir(parents=True, exist_ok=True)
            library.unlink(missing_ok=True)  # one that is loaded already must not change
            _copy(descriptor, library)
            BUILT.setdefault(name, []).append(library)
        finally:
            os.close(descriptor)
        return library, str(reply.get("name", name))


def _machine() -> list[str]:
    """Folders that the builder has as well: nothing in them is the candidate's own."""
    torch_root = str(Path(torch.__file__).parent)
    return ["/usr", sys.prefix, sys.base_prefix, torch_root, str(torch_cpp_extension.CUDA_HOME)]


def _import(name: str, library: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, library)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module can be loaded from {library}")
    before = sys.modules.get(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if before is not None:  # an extension may enter itself under a name that is another's: torch's, say
        sys.modules[name] = before
    return module


def _copy(descriptor: int, target: Path) -> None:
    with open(descriptor, "rb", closefd=False) as source, target.open("wb") as sink:
        while chunk := source.read(1 << 20):
            sink.write(chunk)


class FirstCalls:
    """A backend's part in this process."""

    def __init__(self, message: dict[str, Any]) -> None:
        """`message`: `text`, `variables`, `cache` and `interpret`, as the trusted end sends them."""
        os.environ.update({str(name): str(value) for name, value in message["variables"].items()})
        os.environ[str(message["cache"])] = PLACE
        self.interprets = bool(message["interpret"])
        """Whether kernels are interpreted."""
        definitions: dict[str, Any] = {"__name__": "inside"}
        exec(compile(message["text"], "inside.py", "exec"), definitions)
        self.inside: Any = definitions["Inside"]()

    def compile_error(self, error: BaseException) -> bool:
        """Whether a kernel was refused by its compiler: this error says so, or one that it came of."""
        return any(map(self.inside.compile_error, _chain(error)))

    def cannot_interpret(self, error: BaseException) -> bool:
        """Whether the interpreter lacks a function: this error says so, or one that it came of."""
        return self.interprets and any(map(self.inside.interpreter_lacks, _chain(error)))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and those that it came of, ten at most."""
    seen: BaseException | None = error
    for _ in range(10):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__


def packed_kernels() -> str:
    """The compiler's cache as text: files in the order of their names, up to MAX_BYTES."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        room = MAX_BYTES
        for folder in sorted(Path(PLACE).iterdir()) if Path(PLACE).is_dir() else ():
            files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
            texts = {str(path.relative_to(PLACE)): path.read_bytes() for path in files}
            room -= sum(len(zlib.compress(text, 1)) for text in texts.values())
            if room < 0:
                break
            for name, text in texts.items():
                archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return base64.b64encode(content.getvalue()).decode()


def unpack_kernels(descriptor: int) -> None:
    """Unpacks a compiler's cache where the compiler looks for it. Kernels that cannot be read are compiled
    again."""
    try:
        with open(descriptor, "rb") as file, zipfile.ZipFile(file) as archive:
            archive.extractall(PLACE)
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error):
        pass
