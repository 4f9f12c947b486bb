"""Kernels that are compiled when they are first called: what a backend does in a candidate's process.

The backend's own part comes as the text of a program, which defines a class `Inside` (`FirstCall` in
`kernelproof.backends.interface`). The compiler's output is packed in the build stage, and unpacked before the
candidate is loaded where it is judged: the same compiler finds it there by its content.
"""

from __future__ import annotations

import base64
import io
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PLACE = "first-calls"
"""The compiler's cache, in the working directory. A relative path: the cache names its files by it, and is
used in another directory."""
MAX_BYTES = 8 << 20
"""Most bytes of the packed cache. Kernels beyond it are compiled again at their first call."""


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


def packed() -> str:
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


def unpack(descriptor: int) -> None:
    """Unpacks a compiler's cache where the compiler looks for it. Kernels that cannot be read are compiled
    again."""
    try:
        with open(descriptor, "rb") as file, zipfile.ZipFile(file) as archive:
            archive.extractall(PLACE)
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error):
        pass
