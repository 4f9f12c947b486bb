"""Folders that a stranger may have filled: what lies in them is read, and nothing that lies elsewhere.

A link to a private file of the reader's would else bring it into the database, and onto the pages.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from kernelproof.regular_files import read_regular
from kernelproof.runs.files import LeftOut, stand_in

_CACHES = ("models--", "datasets--", "spaces--")
"""How a folder in a Hugging Face cache begins. Files in its `snapshots` are links to its `blobs`."""


class Folder:
    """A folder. Of links in it, those are followed that stay inside; with `follow_links` all."""

    def __init__(self, root: Path, *, follow_links: bool = False) -> None:
        self.root, self._follow = root, follow_links
        self._real = Path(os.path.realpath(root))
        above = (each.parent for each in (self._real, *self._real.parents) if each.name == "snapshots")
        self._blobs = next((each / "blobs" for each in above if each.name.startswith(_CACHES)), None)

    def name(self, file: Path) -> str:
        """The file's path below the folder."""
        return str(file.relative_to(self.root))

    def files(self, wanted: Callable[[str], bool]) -> list[Path]:
        """Files whose names are wanted, and links to other folders, which `read` refuses; nothing hidden."""
        found: list[Path] = []
        seen = set()
        for place, folders, names in os.walk(self.root, followlinks=self._follow):
            if (real := os.path.realpath(place)) in seen:  # a link leads back
                folders.clear()
                continue
            seen.add(real)
            folders[:] = [name for name in folders if not name.startswith(".")]
            links = [Path(place, name) for name in folders if not self._follow]
            found += [link for link in links if link.is_symlink() and not self._holds(os.path.realpath(link))]
            files = [Path(place, name) for name in names if wanted(name) and not name.startswith(".")]
            found += [file for file in files if file.is_symlink() or file.is_file()]
        return sorted(found)

    def text(self, file: Path) -> str:
        """A program's or an answer's file. Raises LeftOut where it holds none, and as `read` does."""
        try:
            text = self.read(file).decode("utf-8")
        except UnicodeDecodeError:
            raise LeftOut("it is not a text file in UTF-8") from None
        if stands_in := stand_in(text):
            raise LeftOut(f"it holds {stands_in}")
        return text

    def read(self, file: Path) -> bytes:
        """What a file holds. Raises LeftOut for one that leads out of the folder, or cannot be read."""
        try:
            return read_regular(file, allow=self._allow)
        except OSError as error:
            self._allow(Path(os.path.realpath(file)))
            raise LeftOut(str(error.strerror)) from None

    def _allow(self, real: Path) -> None:
        if not (self._follow or self._holds(real)):
            raise LeftOut(f"a link out of the folder, to {real}; --follow-links reads it")

    def _holds(self, real: str | Path) -> bool:
        return Path(real).is_relative_to(self._real) or Path(real).parent == self._blobs
