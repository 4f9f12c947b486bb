"""Users' files: the candidates they give, and what runs leave in `generated/` for them to read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
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


_CACHES = ("models--", "datasets--", "spaces--")
"""How a folder in a Hugging Face cache begins. Files in its `snapshots` are links to its `blobs`."""


class Folder:
    """A folder that a stranger may have filled. Of links in it, those are followed that stay inside; with
    `follow_links` all. A link to a private file would else bring it into the database, and onto the pages."""

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
