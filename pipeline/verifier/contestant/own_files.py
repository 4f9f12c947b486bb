"""Files of a candidate's own that an extension is made of: its sources, and the headers that these include.

The compilers run elsewhere and see nothing that the candidate wrote, so such files are sent along. They are
found as a preprocessor finds them, but that every branch is followed. Standard library only.

Names that a candidate draws anew each time (`mkdtemp`) must not reach the build, or no build would ever be in
the cache: sources and folders are numbered, but for those that an `#include` spells out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

MAX_FILES = 500
MAX_CHARS = 4_000_000
"""Most characters of all headers together."""
ROOT = "own"
"""Folder in the build's directory."""

_INCLUDE = re.compile(
    r"""^[ \t]*\#[ \t]*include[ \t]*(?P<quoted>["<])(?P<name>[^">\n]+)[">]"""
    r"""|__has_include[ \t]*\([ \t]*(?P<asked>["<])(?P<there>[^">\n]+)[">]""",
    re.MULTILINE,
)
_EMPTY = "_"
"""Name of a file that holds a folder's place."""
_USABLE = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,199}")


def with_own_files(
    request: dict[str, Any],
    *,
    machine: Sequence[str],
    sources: Iterable[str | os.PathLike[str]] = (),
    directory: str | None = None,
) -> dict[str, Any]:
    """The request with what it takes of the candidate's own files.

    `sources`: files to compile, each by itself. `directory`: where the inline sources would lie. `machine`:
    folders that the builder has, too; files below them are not sent. Raises OSError for a source that cannot
    be read and RuntimeError for what cannot be sent.
    """
    gathered = _Gathering([_absolute(path) for path in machine], request["extra_include_paths"])
    for source in sources:
        gathered.add_unit(_absolute(source))
    texts = (*request["cpp_sources"], *request["cuda_sources"])
    gathered.follow(texts, _absolute(directory) if directory is not None else None)
    return request | gathered.fields()


class _Gathering:
    """What was found so far."""

    def __init__(self, machine: Sequence[Path], include_paths: Sequence[str]) -> None:
        self._machine = machine
        self._include_paths = [path.strip() for path in include_paths]
        self._folders = [
            path for path in map(_absolute, self._include_paths) if not self._of_the_machine(path)
        ]
        self._units: list[Path] = []
        self._texts: dict[Path, str] = {}
        self._spelt: set[str] = set()
        """What includes spell out, part by part."""
        self._passed: dict[Path, None] = {}
        """Folders on the way to an included file, those that `..` leaves again among them."""

    def add_unit(self, path: Path) -> None:
        if path not in self._units:
            self._units.append(path)
            self._add(path)

    def follow(self, texts: Iterable[str], folder: Path | None) -> None:
        """Adds the headers of texts that would lie in a folder, and of what was added already."""
        waiting = [(text, folder) for text in texts]
        waiting += [(self._texts[path], path.parent) for path in self._units]
        while waiting:
            text, folder = waiting.pop(0)
            for path in self._included(text, folder):
                if path not in self._texts:
                    self._add(path)
                    waiting.append((self._texts[path], path.parent))

    def fields(self) -> dict[str, Any]:
        """`files`, `units` and `extra_include_paths` of a request."""
        names = self._names()
        include_paths = [
            text if self._of_the_machine(path) else names[path]
            for text in self._include_paths
            if self._of_the_machine(path := _absolute(text)) or path in names
        ]
        files = {names[path]: text for path, text in self._texts.items()}
        # No folder is made for its own sake, and one that is only passed has to be there, too.
        files |= {f"{names[path]}/{_EMPTY}": "" for path in self._passed if path not in self._above()}
        return {
            "files": files,
            "units": [names[path] for path in self._units],
            "extra_include_paths": include_paths,
        }

    def _add(self, path: Path) -> None:
        self._texts[path] = path.read_text(encoding="utf-8", errors="replace")
        if len(self._texts) > MAX_FILES or sum(map(len, self._texts.values())) > MAX_CHARS:
            raise RuntimeError(
                f"more than {MAX_FILES} files, or {MAX_CHARS} characters of them, for one extension"
            )

    def _included(self, text: str, folder: Path | None) -> Iterator[Path]:
        for match in _INCLUDE.finditer(text):
            name, sign = match["name"] or match["there"], match["quoted"] or match["asked"]
            if name.startswith("/"):  # means nothing elsewhere
                continue
            near = [folder] if sign == '"' and folder is not None else []
            for place in (*near, *self._folders):
                path = _absolute(place / name)
                if _is_file(path) and not self._of_the_machine(path):
                    parts = PurePath(name).parts
                    self._spelt.update(parts)
                    self._passed |= {_absolute(place.joinpath(*parts[:n])): None for n in range(len(parts))}
                    yield path
                    break

    def _above(self) -> set[Path]:
        return {folder for path in self._texts for folder in path.parents}

    def _of_the_machine(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self._machine)

    def _names(self) -> dict[Path, str]:
        """The place in the build of each file, and of each folder above one."""
        above = self._above()
        kept = [folder for folder in self._folders if folder in above]
        top = _common([*(path.parent for path in self._texts), *kept, *self._passed])
        names = {top: ROOT}
        for number, path in enumerate(self._units):
            self._name(path, names, f"unit{number}{path.suffix}")
        for path in self._texts:
            self._name(path, names, path.name)
        for path in self._passed:
            self._name(path, names, f"folder{len(names)}")
        return names

    def _name(self, path: Path, names: dict[Path, str], fresh: str) -> str:
        """Names a path and the folders above it; `fresh` where no include spells its name out."""
        if path not in names:
            above = self._name(path.parent, names, f"folder{len(names)}")
            own = path.name if path.name in self._spelt else fresh
            if _USABLE.fullmatch(own) is None:
                raise RuntimeError(f"a file with such a name cannot be built here: {path.name!a}")
            names[path] = f"{above}/{own}"
        return names[path]


def _absolute(path: str | os.PathLike[str]) -> Path:
    """Without `..`, and without following links: a path that an include spells out stays as it is."""
    return Path(os.path.normpath(Path(path).absolute()))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the name is too long, say
        return False


def _common(folders: Sequence[Path]) -> Path:
    return Path(os.path.commonpath(folders)) if folders else Path("/")
