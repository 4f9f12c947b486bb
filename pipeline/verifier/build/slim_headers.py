"""The slim route: the same sources, with those of torch's headers only that they use.

`torch/extension.h` brings all of torch, and nearly all of a small candidate's build is spent on parsing it,
twice for the device and once for the bindings. Here the names in a source say which operators it uses; a
folder ahead of torch's own on the include path answers for torch's large headers with the declarations of
these alone. They are read from the installed torch, never written by us, so that they mean the same.
Bindings are made without pybind11 where the signatures are simple (`bindings/kernelproof_bindings.h`).

A missing declaration is a compile error, and then the build is repeated in full: the route only decides the
time. `has_unfixable_errors` says where more declarations would not help. It looks at the first error of each
source only, as others may follow from it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from kernelproof.types.build import BuildRequest
from kernelproof.verifier.build.toolchain import Toolchain

FOLDER = "slim"
"""In the scratch directory, first on the include path."""
GLUE, BINDINGS = "glue.o", "kernelproof_bindings.h"
GLUE_FOLDER = Path(__file__).parent / "bindings"
LARGE = (
    "torch/extension.h",
    "torch/all.h",
    "torch/torch.h",
    "torch/types.h",
    "ATen/ATen.h",
    "ATen/Functions.h",
)
"""Headers that the slim one stands for."""
_SLIM = "kernelproof_torch.h"

_UNNEEDED = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*<(?:"
    r"ATen/(?:ATen|Context|DeviceGuard|Functions)\.h|ATen/ops/empty_like\.h|torch/library\.h"
    r"|torch/csrc/autograd/\S+"
    r")>.*$",
    re.MULTILINE,
)
"""Includes of torch's small headers that their declarations do without, and that bring nearly everything."""
_NAMES = re.compile(r"\b[A-Za-z_]\w*")
_PYTHON_SIDE = re.compile(r"\b(?:PYBIND11_\w+|pybind11|py|THP\w*|Py[A-Z]\w*)\b")
_BEYOND = re.compile(
    r"\btorch\s*::\s*(?:autograd|cuda|data|executor|jit|nn|optim|python|serialize|stable|tensor)\b"
    r"|\bTORCH_LIBRARY\w*|\brequires_grad\b|#\s*include\s*[<\"]torch/csrc/"
)
"""What lies outside of the slim headers, or means something else with them (gradients)."""
_BY_NAME = {
    "parallel_for": "ATen/Parallel.h",
    "parallel_reduce": "ATen/Parallel.h",
    "get_num_threads": "ATen/Parallel.h",
    "indexing": "ATen/TensorIndexing.h",
    "index_put_": "ATen/TensorIndexing.h",
    "OptionalDeviceGuard": "c10/core/DeviceGuard.h",
    "DeviceGuard": "c10/core/DeviceGuard.h",
    "NoGradGuard": "ATen/core/grad_mode.h",
    "cout": "iostream",
    "cerr": "iostream",
    "ostringstream": "sstream",
    "stringstream": "sstream",
    "accumulate": "numeric",
    "iota": "numeric",
    "thread": "thread",
    "mutex": "mutex",
    "unordered_map": "unordered_map",
    "map": "map",
    "set": "set",
    "deque": "deque",
    "chrono": "chrono",
    "atomic": "atomic",
    "future": "future",
    "async": "future",
    "condition_variable": "condition_variable",
    "bitset": "bitset",
    "random_device": "random",
    "mt19937": "random",
}
"""Names to the header that the large ones bring along for them."""
_ALWAYS = (
    *("algorithm", "array", "cmath", "cstdint", "cstdlib", "cstring", "functional", "limits", "math.h"),
    *("memory", "numeric", "optional", "stdlib.h", "string", "tuple", "type_traits", "utility", "vector"),
)


@dataclass(frozen=True)
class Slim:
    """The slim route of one request."""

    files: dict[str, str]
    """Path in the scratch directory to text."""
    cuda: bool
    """Whether the CUDA source takes it."""
    bindings: bool
    """Whether the C++ source takes it, with bindings of ours, and the glue is linked in."""

    def only(self, *, cuda: bool, bindings: bool) -> Slim | None:
        """The route for those of its sources; None for none of them."""
        kept = replace(self, cuda=self.cuda and cuda, bindings=self.bindings and bindings)
        return kept if kept.cuda or kept.bindings else None


@cache
def headers() -> dict[str, str]:
    """Name to text of the headers that bindings include."""
    return {path.name: path.read_text() for path in sorted(GLUE_FOLDER.glob("*.h"))}


def slim_route(request: BuildRequest, toolchain: Toolchain) -> Slim | None:
    """What to write for the slim route; None where the request is none for it."""
    if request.no_implicit_headers or request.units or not request.with_pytorch_error_handling:
        return None
    own = (
        request.files.values()
    )  # which of them a source includes is not looked at: any may bring what it uses
    cpp, cuda = "\n".join((*request.cpp_sources, *own)), "\n".join((*request.cuda_sources, *own))
    bindings = request.functions is not None and _fits(cpp)
    kernels = bool(request.cuda_sources) and _fits(cuda)
    if not bindings and not kernels:
        return None
    used = (cpp if bindings else "") + "\n" + (cuda if kernels else "")
    files = _headers(frozenset(_NAMES.findall(used)), toolchain)
    if files is None:
        return None
    if bindings:
        files |= {f"{FOLDER}/{name}": text for name, text in headers().items()}
    return Slim(files, kernels, bindings)


def _fits(source: str) -> bool:
    return not _PYTHON_SIDE.search(source) and not _BEYOND.search(source)


def _headers(names: frozenset[str], toolchain: Toolchain) -> dict[str, str] | None:
    """The slim headers for these names. None where this torch's headers are not as we know them."""
    root = Path(toolchain.torch_includes[0])
    types = _text(root / "torch/csrc/api/include/torch/types.h")
    operators = _text(root / "ATen/TensorOperators.h")
    if types is None or operators is None or not (root / "ATen/core/Tensor.h").is_file():
        return None
    wanted = sorted(name for name in names | {"empty_like"} if (root / f"ATen/ops/{name}_ops.h").is_file())
    files = {f"{FOLDER}/ATen/ops/{name}.h": _slimmed(root / f"ATen/ops/{name}.h") for name in wanted}
    files[f"{FOLDER}/ATen/TensorOperators.h"] = _without(operators)
    for header in ("CUDAContext.h", "CUDAContextLight.h", "Exceptions.h"):
        found = _text(root / "ATen/cuda" / header)
        if found is not None:
            files[f"{FOLDER}/ATen/cuda/{header}"] = _without(found)
    includes = [*_ALWAYS, *sorted({_BY_NAME[name] for name in names & _BY_NAME.keys()})]
    includes += ["ATen/core/Tensor.h", "ATen/Dispatch.h", "c10/util/Exception.h"]
    includes += [*(f"ATen/ops/{name}.h" for name in wanted), "ATen/TensorOperators.h"]
    text = "".join(f"#include <{header}>\n" for header in includes)
    files[f"{FOLDER}/{_SLIM}"] = f"#pragma once\n{text}{_without(types).replace('#pragma once', '')}"
    for header in LARGE:
        files[f"{FOLDER}/{header}"] = f"#pragma once\n#include <{_SLIM}>\n"
    return files


@cache
def _slimmed(path: Path) -> str:
    return _without(path.read_text())


@cache
def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _without(text: str) -> str:
    return _UNNEEDED.sub("", text)


_FIRST = re.compile(
    r"^(?P<file>main\.cpp|cuda\.cu|own/[^:(\n]+)(?::\d+:\d+:|\(\d+\):) (?:fatal |catastrophic )?error:? "
    r"(?P<text>.*)\n(?P<code>.*)",
    re.MULTILINE,
)
_ANY = re.compile(r"^[^\s:(][^:(\n]*(?::\d+:\d+:|\(\d+\):) (?:fatal |catastrophic )?error\b", re.MULTILINE)
_NO_FILE = re.compile(r"No such file or directory|cannot open source file")
_UNKNOWN = re.compile(
    r"identifier \"(?P<edg>\w+)\" is undefined|'(?P<gcc>\w+)' was not declared in this scope"
)
_SYNTAX = re.compile(r"expected an? \"[;)}\]]\"$|expected '[;)}\]]'")
_DROPPED = re.compile(r"DeprecatedTypeProperties\" to \"c10::ScalarType\"")
_MACRO = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b")
_USING = re.compile(r"\busing\s+namespace\b|##")
_STANDARD = (Path("/usr/include/c++"), Path("/usr/include"))


def has_unfixable_errors(log: str, request: BuildRequest, toolchain: Toolchain) -> bool:
    """Whether a build that failed so fails with all headers, too."""
    log = log.replace("\u2018", "'").replace("\u2019", "'")
    return any(_is_final(error, request, toolchain) for error in _first_errors(log))


def _first_errors(log: str) -> Iterator[re.Match[str]]:
    """The first error of each source, where it lies in the candidate's own text."""
    for part in re.split(r"^FAILED: .*$", log, flags=re.MULTILINE)[1:]:
        any_error, own = _ANY.search(part), _FIRST.search(part)
        if any_error is not None and own is not None and any_error.start() == own.start():
            yield own


def _is_final(error: re.Match[str], request: BuildRequest, toolchain: Toolchain) -> bool:
    text = error["text"]
    if _NO_FILE.search(text) or _DROPPED.search(text):
        return True
    unknown = _UNKNOWN.search(text)
    if unknown is not None:
        name = unknown["edg"] or unknown["gcc"]
        return _is_undeclared_binding(name, request) or not _in_headers(name, toolchain)
    # A macro that is missing may be what a bracket or semicolon seems to be missing at.
    return bool(_SYNTAX.search(text)) and not _MACRO.search(error["code"])


def _is_undeclared_binding(name: str, request: BuildRequest) -> bool:
    """Whether it is a function to be bound that nothing of the candidate's own mentions: a function of
    torch's with such a name lies in a namespace."""
    own = "\n".join((*request.cpp_sources, *request.files.values()))
    named = name in (request.functions or {})
    return named and re.search(rf"\b{name}\b", own) is None and _USING.search(own) is None


@lru_cache(maxsize=512)
def _occurs(name: str, roots: tuple[Path, ...]) -> bool:
    wanted = name.encode()
    for root in roots:
        for folder, _, files in os.walk(root):
            for file in files:
                try:
                    if wanted in Path(folder, file).read_bytes():
                        return True
                except OSError:
                    continue
    return False


def _in_headers(name: str, toolchain: Toolchain) -> bool:
    """Whether any header of torch, the CUDA toolkit or the system has these letters."""
    roots = [Path(path) for path in toolchain.torch_includes]
    roots += [Path(str(toolchain.cuda_home), "include")] if toolchain.cuda_home else []
    return _occurs(name, (*roots, *_STANDARD))
