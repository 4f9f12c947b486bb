"""Users' files: the candidates they give, and what runs leave in `generated/` for them to read."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from kernelproof.errors import MachineError, UsageError
from kernelproof.regular_files import TEXT_BYTES, read_regular
from kernelproof.types import AttemptKey, Extraction, Response, Verification

STANDARD_INPUT = "standard input"
"""What a candidate is called that was read from there."""
_PATH = re.compile(r"\.{0,2}/\S{1,4000}|\S{1,4000}\.(?:py|txt|md|json)")
_LFS = "version https://git-lfs.github.com/spec/"


class LeftOut(UsageError):
    """A file that is not read, or that holds no program through no fault of its author."""


def write_attempt(
    root: Path,
    attempt_id: int,
    key: AttemptKey,
    response: Response | None,
    extraction: Extraction | None,
    verdict: Verification | None,
) -> Path:
    """Writes `<problem>/<attempt>/` with `response.md`, `candidate.py`, `verification.json`; returns it.

    For people: the database is what counts. Raises MachineError when they cannot be written.
    """
    folder = root / key.problem_id / f"{attempt_id}-sample{key.sample}-turn{key.turn}"
    try:
        _make(root, folder)
        if response is not None and response.text is not None:
            _write(folder / "response.md", response.text)
        if extraction is not None and extraction.candidate is not None:
            _write(folder / "candidate.py", extraction.candidate.source)
        if verdict is not None:
            _write(folder / "verification.json", verdict.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise MachineError(
            f"{folder} cannot be written ({error.strerror}); mend that and run the same command again"
        ) from error
    return folder


def _make(root: Path, folder: Path) -> None:
    """Makes `root` and the folders in it, each by itself, and never what `root` lies in: a workspace that is
    removed meanwhile is not made anew."""
    root.mkdir(exist_ok=True)
    for part in reversed((folder, *folder.parents)):
        if part.is_relative_to(root) and part != root:
            part.mkdir(exist_ok=True)


def read_text(file: Path) -> str:
    """A candidate's or response's file as text, its line endings as they are.

    Raises UsageError when it cannot be read as UTF-8, and where something else stands in for a program.
    """
    try:
        content = read_regular(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    text = _decoded(content, str(file))
    if stands_in := stand_in(text):
        raise UsageError(f"{file} holds {stands_in}")
    return text


def stand_in(text: str) -> str | None:
    """What a text is instead of a program: a path, or a pointer of Git LFS; None for all others.

    The program's author wrote neither.
    """
    if text.startswith(_LFS):
        return "a pointer of Git LFS instead of a program; git lfs pull brings the program"
    if _PATH.fullmatch(text.strip()):
        return "only a path, as some checkouts write a link; git -c core.symlinks=true checks it out as one"
    return None


def read_standard_input() -> str:
    """Everything on standard input, as a file's text. Raises UsageError when it is not UTF-8."""
    content = sys.stdin.buffer.read(TEXT_BYTES + 1)
    if len(content) > TEXT_BYTES:
        raise UsageError(f"{STANDARD_INPUT} holds more than {TEXT_BYTES >> 20} MiB")
    return _decoded(content, STANDARD_INPUT)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not a text file in UTF-8") from None


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a reader never sees half a file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8", errors="surrogatepass")
    partial.replace(path)
