"""Files and folders that have their name only when all of them is written."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from kernelproof.errors import UsageError, writing
from kernelproof.report.plain import finite, whole
from kernelproof.wording import counted


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """The path to write to, beside `path`, whose place it takes at the end. After an error nothing is left.

    Raises UsageError for a directory, MachineError where the file cannot be written.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name the file that is to be written in it")
    with _beside(path) as partial:
        partial.touch()
        yield partial


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """The same for a folder, which must not be there, or be empty."""
    if os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
        raise UsageError(f"{path} is there already; choose another name, or move it away")
    with _beside(path) as partial:
        partial.mkdir()
        yield partial


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    with _ended_politely(), writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield partial
            partial.replace(path)  # onto an empty folder, too
        finally:
            if partial.is_dir():
                shutil.rmtree(partial)
            partial.unlink(missing_ok=True)


@contextmanager
def _ended_politely() -> Iterator[None]:
    """Makes SystemExit of SIGTERM, so that what is half written is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def open_text(path: Path) -> TextIO:
    """A file for ASCII text."""
    return path.open("w", encoding="ascii", newline="\n")


def json_of(value: Any, indent: int | None = None) -> str:
    """ASCII JSON that strict readers take: infinities and NaN as null, texts as `whole` has them."""
    try:
        text = json.dumps(value, allow_nan=False, indent=indent)
    except ValueError:  # an infinity or a NaN, or a value within itself
        text = "\\ud"
    if "\\ud" not in text:  # there is nothing to replace, as almost always
        return text
    return json.dumps(_whole(finite(value)), allow_nan=False, indent=indent)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value


def left_out(count: int, noun: str, why: str) -> list[str]:
    """A sentence about what an export lacks; none where it lacks nothing."""
    return [f"{counted(count, noun)} left out: {why}."] if count else []
