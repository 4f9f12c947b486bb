"""Folders that somebody else may have filled: what lies in them is read, and nothing that lies elsewhere.

A stranger's repository can hold a link to a private file of the reader's. What it leads to would be stored,
and shown on the pages.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from kernelproof.errors import UsageError
from kernelproof.regular_files import MIB, TEXT_BYTES, open_regular, read_bounded
from kernelproof.runs.files import LeftOut, decoded, stand_in

FOLDER_BYTES = 2048 * MIB
"""The most that is read of one folder."""
_CACHES = ("models--", "datasets--", "spaces--")
"""How the folders of a Hugging Face cache begin. Their files are links to `blobs` beside `snapshots`."""


class Folder:
    """A folder, and the links that may be followed in it: those that stay inside, or all."""

    def __init__(self, root: Path, *, follow_links: bool = False) -> None:
        """`follow_links`: those that lead out of it as well."""
        self.root = root
        self._follow = follow_links
        self._left = FOLDER_BYTES
        self._real = _real(root)
        above = (each.parent for each in (self._real, *self._real.parents) if each.name == "snapshots")
        self._blobs = next((each / "blobs" for each in above if each.name.startswith(_CACHES)), None)

    def name(self, file: Path) -> str:
        """The file's path below the folder."""
        return str(file.relative_to(self.root))

    def files(self, wanted: Callable[[str], bool]) -> list[Path]:
        """The files whose names are wanted, and links to folders elsewhere; nothing that is hidden."""
        return sorted(self._walk(wanted))

    def _walk(self, wanted: Callable[[str], bool]) -> Iterator[Path]:
        seen = set()
        for place, folders, files in os.walk(self.root, followlinks=self._follow):
            status = Path(place).stat()
            folders[:] = [name for name in folders if not name.startswith(".")]
            if (status.st_dev, status.st_ino) in seen:  # a link leads back
                folders.clear()
                continue
            seen.add((status.st_dev, status.st_ino))
            for name in folders if not self._follow else ():
                path = Path(place, name)
                if path.is_symlink() and not self._inside(_real(path)):
                    yield path
            for name in files:
                path = Path(place, name)
                if wanted(name) and not name.startswith(".") and (path.is_symlink() or path.is_file()):
                    yield path

    def text(self, file: Path) -> str:
        """A program's or an answer's file. Raises LeftOut as `read` does, UsageError for no UTF-8."""
        text = decoded(self.read(file), self.name(file))
        if stands_in := stand_in(text):
            raise LeftOut(f"it holds {stands_in}")
        return text

    def read(self, file: Path) -> bytes:
        """What a file holds. Raises LeftOut for one that is not read, UsageError where that fails."""
        try:
            with open_regular(file) as opened:
                # Of the open file: the path may lead elsewhere now than when it was listed.
                real = Path(f"/proc/self/fd/{opened.fileno()}").readlink()
                if not (self._follow or self._inside(real)):
                    raise LeftOut(_leads_out(real))
                content = read_bounded(opened, min(TEXT_BYTES, self._left))
        except OSError as error:
            if not (self._follow or self._inside(_real(file))):
                raise LeftOut(_leads_out(_real(file))) from None
            if error.errno in (errno.EINVAL, errno.EFBIG, errno.ELOOP, errno.ENOENT):
                raise LeftOut(str(error.strerror)) from None
            raise UsageError(f"{file} cannot be read: {error.strerror}") from None
        self._left -= len(content)
        return content

    def _inside(self, real: Path) -> bool:
        return real.is_relative_to(self._real) or (self._blobs is not None and real.parent == self._blobs)


def _real(path: Path) -> Path:
    """Where the path leads now; unlike `Path.resolve`, this fails for no loop of links."""
    return Path(os.path.realpath(path))


def _leads_out(real: Path) -> str:
    return f"a link out of the folder, to {real}; --follow-links reads it"
