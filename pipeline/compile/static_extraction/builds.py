"""Builds that a source shows before it runs: calls of `load_inline` whose arguments stand in it.

Importing a candidate to learn which builds it asks for takes a sandbox, and seconds of processor time for
torch. Nearly every candidate shows them in plain text: strings, and calls that name them, at the top of the
module, in functions and methods, or after `torch.cuda.is_available()`. Such calls are read, and built,
without running anything. Errors cost time only: the cache is addressed by content, so a build that the
candidate does not ask for is never found, and a build that the text does not show is made when it is asked
for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from kernelproof.compile.static_extraction.expressions import LOADER
from kernelproof.compile.static_extraction.reader import Reader
from kernelproof.compile.static_extraction.scopes import MOST_WAYS, UNKNOWN, Given, ways_of
from kernelproof.contestant import requests
from kernelproof.pysource import parse
from kernelproof.types import BuildRequest, Problem
from kernelproof.types.build import MAX_SOURCE_CHARS

OTHERS = frozenset({"load", "CUDAExtension", "CppExtension", "_compile_kernel"})
"""Other ways to native code: where one is named, the source may not show all builds."""
_ROUNDABOUT = re.compile(r"cpp_extension|setuptools|\b(?:exec|eval|__import__|import_module|runpy)\b")
"""Where one of these is named and no loader is, one may be called all the same."""
_MODULE = "torch.utils.cpp_extension"
_MACHINE = "/usr/"
"""A file below it is never the candidate's own."""
_OURS = frozenset({"verbose", "build_directory", "keep_intermediates", "use_pch"})
"""Arguments that are no part of a request."""
_MOST_REQUESTS = 64
MODEL = "ModelNew"


@dataclass(frozen=True)
class StaticBuilds:
    """What a source shows of its builds."""

    requests: tuple[BuildRequest, ...]
    """Each once, in the order in which they are asked for."""
    complete: bool
    """Whether nothing in the source asks for another one."""
    certain: tuple[BuildRequest, ...] = ()
    """Builds that importing the source, or constructing its model, asks for in any case, outside of any
    `try`."""


def static_builds(
    source: str,
    *,
    gpu: bool = True,
    capability: tuple[int, int] | None = None,
    arguments: Sequence[Any] | None = None,
) -> StaticBuilds:
    """What the source will ask to have built, as far as it shows that.

    `gpu`: whether `torch.cuda.is_available()` is true where it runs; `capability`: the GPU's. `arguments`:
    what its model is constructed with, where that is known.
    """
    tree = parse(source)
    if isinstance(tree, SyntaxError):
        return StaticBuilds((), False)
    reader = _Requests(tree, gpu=gpu, capability=capability)
    try:
        reader.read(MODEL, arguments)
    except Exception:  # too much to read; and an unexpected error costs an import, not a batch
        reader.complete = False
    names = _names(tree)
    named = {id(node) for node in ast.walk(tree) if _is_loader(node, names)}
    complete = reader.complete and named <= reader.loader_calls and not _other_ways(tree)
    complete &= bool(named) or _ROUNDABOUT.search(source) is None
    return StaticBuilds(tuple(reader.found), complete, tuple(reader.certain))


def init_arguments(problem: Problem, size: str) -> list[Any] | None:
    """What a problem's text shows that models are constructed with; None where it does not show all of it."""
    tree = parse(problem.source)
    if isinstance(tree, SyntaxError):
        return None
    reader = _Requests(tree, gpu=False, capability=None)
    try:
        reader.read_module(problem.sizes.get(size, {}))
        found = reader.call("get_init_inputs")
    except Exception:  # as in `static_builds`
        return None
    return list(found) if isinstance(found, list | tuple) and UNKNOWN not in found else None


class _Requests(Reader):
    """Turns calls of loaders into requests."""

    def __init__(self, tree: ast.Module, *, gpu: bool, capability: tuple[int, int] | None) -> None:
        super().__init__(tree, gpu=gpu, capability=capability)
        self.found: list[BuildRequest] = []
        self.certain: list[BuildRequest] = []
        self.complete = True
        self._characters = 0

    def asked(self, given: Given) -> None:
        if self.muted:
            return
        named = {name: None if name in _OURS else value for name, value in given.named.items()}
        count = len(given.arguments)
        choices = product(*(ways_of(value) for value in (*given.arguments, *named.values())))
        ways = list(islice(choices, MOST_WAYS + 1))
        self.complete &= given.complete and len(ways) <= MOST_WAYS
        for way in ways[:MOST_WAYS] if given.complete else []:
            request = _request(way[:count], dict(zip(named, way[count:], strict=True)))
            if request is None or not self._fits(request):
                self.complete = False
                continue
            self.found += [request] if request not in self.found else []
            if not self.unsure and len(ways) == 1 and request not in self.certain:
                self.certain.append(request)

    def _fits(self, request: BuildRequest) -> bool:
        self._characters += sum(map(len, (*request.cpp_sources, *request.cuda_sources)))
        return self._characters <= MAX_SOURCE_CHARS and len(self.found) < _MOST_REQUESTS

    def passed_over(self, *nodes: ast.AST) -> None:
        for node in nodes:
            self.loader_calls |= {id(each) for each in ast.walk(node)}


def _request(arguments: tuple[Any, ...], named: dict[str, Any]) -> BuildRequest | None:
    """The request of a call; None where it is not known, or refused when the candidate makes it."""
    if not all(map(_is_plain, (*arguments, *named.values()))):
        return None
    try:
        found = BuildRequest.model_validate(requests.load_inline(*arguments, **named))
        found.model_dump_json().encode()
    except (TypeError, RuntimeError, ValueError):
        return None
    if any(not path.strip().startswith(_MACHINE) for path in found.extra_include_paths):
        return None  # which headers of its own lie there when it asks is not in the source
    return found


def _is_plain(value: Any) -> bool:
    """Whether it is such as `load_inline` takes: text, a list or dictionary of texts, a truth value, None."""
    if isinstance(value, list | tuple):
        return all(isinstance(item, str) for item in value)
    if isinstance(value, dict):
        return all(isinstance(item, str) for item in (*value, *value.values()))
    return value is not UNKNOWN and isinstance(value, str | int | None)


def _names(tree: ast.Module) -> frozenset[str]:
    return frozenset({LOADER, *_aliases(tree)})


def _aliases(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == _MODULE:
            yield from (alias.asname for alias in node.names if alias.name == LOADER and alias.asname)


def _is_loader(node: ast.AST, names: frozenset[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == LOADER
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names


def _other_ways(tree: ast.Module) -> bool:
    """Whether another way to native code is named."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            if any(alias.name in OTHERS for alias in node.names):
                return True
        elif isinstance(node, ast.Attribute) and node.attr in OTHERS and not _is_torch_load(node):
            return True
    return False


def _is_torch_load(node: ast.Attribute) -> bool:
    """`torch.load` and `json.load` read files, and build nothing."""
    return (
        node.attr == "load" and isinstance(node.value, ast.Name) and node.value.id in ("torch", "json", "np")
    )
