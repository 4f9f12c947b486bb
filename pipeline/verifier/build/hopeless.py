"""Errors that no header can mend: a source that ends in one with the slim headers is not compiled again in
full.

Only the first error of a source is looked at, as others may follow from it, and only one that says without
doubt that more declarations would not help.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from kernelproof.types.build import BuildRequest
from kernelproof.verifier.build.toolchain import Toolchain

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


def hopeless(log: str, request: BuildRequest, toolchain: Toolchain) -> bool:
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
def _found(name: str, roots: tuple[Path, ...]) -> bool:
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
    return _found(name, (*roots, *_STANDARD))
