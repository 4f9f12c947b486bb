"""Reading what is imported: a folder of programs with KernelBench's results beside them, or a file of lines.

All is read before anything is stored, so that everything that is wrong with it is said at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from kernelproof.errors import UsageError
from kernelproof.problems import Suite
from kernelproof.problems.suite import PACKAGED
from kernelproof.runs.candidates import (
    SUFFIXES,
    Given,
    all_given,
    given_text,
    is_candidate,
    problem_of,
    read_candidates,
)
from kernelproof.runs.files import read_text
from kernelproof.runs.imports.claims import RESULTS, Claimed, Times, is_entry, read_claims, reported
from kernelproof.runs.imports.naming import Place, place_of
from kernelproof.types import Problem
from kernelproof.types.reported import ReportedResult
from kernelproof.wording import counted

SAMPLE = "kernel.json"
"""A published sample of KernelBench: its program, and what is claimed of it."""
_NO_PROGRAM = re.compile(r"(?:^|_)prompt(?:_|\.)|^eval_result|(?:^|_)log(?:_|\.)")
"""Texts that KernelBench leaves beside its programs."""
_RESPONSE = "_response"
_NAMED = 3
"""The number of files or entries that a note names."""


@dataclass(frozen=True)
class Found:
    """What there is to import."""

    given: tuple[Given, ...]
    """Each with where it came from, and with its claim where there is one."""
    notes: tuple[str, ...] = ()
    """What was left out, a sentence each."""


def read_import(path: Path, suite: Suite, problem: Problem | None, times: Times | None = None) -> Found:
    """The programs in a folder or a file of lines. `problem` is that of all of them, where given.

    `times`: the reference's milliseconds by problem, for claims that have none. Raises UsageError when there
    is nothing, and one that says of every file or line what is wrong with it.
    """
    if path.is_dir():
        return _Folder(path, suite, problem, times or {}).read()
    lines = read_candidates(path, suite, problem)
    return Found(tuple(replace(one, reported=one.reported or ReportedResult(source=one.id)) for one in lines))


@dataclass
class _Folder:
    """One folder that is being read."""

    root: Path
    suite: Suite
    problem: Problem | None
    times: Times
    notes: list[str] = field(default_factory=list)

    def read(self) -> Found:
        """Everything in it."""
        files = self._files()
        places = {file: self._place(file) for file in files}
        if self.problem is None and self.suite.name == PACKAGED and any(places.values()):
            raise UsageError(
                f"{self.root} numbers its problems as KernelBench does, and the packaged problems have other "
                "numbers; give --suite DIRECTORY, a checkout of KernelBench"
            )
        files = self._programs(files, places)
        if not files:
            raise UsageError(
                f"{self.root} holds no programs: no {', '.join(SUFFIXES)} and no {SAMPLE} below it"
            )
        claims = self._claims(files, places)

        def one(file: Path) -> Given:
            return self._given(file, places[file], claims.get(file))

        return Found(tuple(all_given(files, one, self._name)), tuple(self.notes))

    def _files(self) -> list[Path]:
        found = (file for file in self.root.rglob("*") if file.is_file())
        return sorted(file for file in found if is_candidate(file, self.root) or file.name == SAMPLE)

    def _name(self, file: Path) -> str:
        return str(file.relative_to(self.root))

    def _place(self, file: Path) -> Place | None:
        return place_of(PurePath(self.root.resolve().name) / file.relative_to(self.root))

    def _programs(self, files: list[Path], places: dict[Path, Place | None]) -> list[Path]:
        """The files without prompts, logs, and answers whose program lies beside them.

        Texts that name no problem are left out where other files do, with a note.
        """
        named = any(places.values())
        programs = {
            (file.parent, places[file]) for file in files if places[file] and _RESPONSE not in file.stem
        }
        kept: list[Path] = []
        strange: list[Path] = []
        for file in files:
            is_text = file.suffix in (".txt", ".md")
            if is_text and _NO_PROGRAM.search(file.name.lower()):
                continue
            if _RESPONSE in file.stem and (file.parent, places[file]) in programs:
                continue
            (strange if is_text and named and places[file] is None else kept).append(file)
        if strange:
            self._note("text", "left out, without a problem in its name", strange)
        return kept

    def _given(self, file: Path, place: Place | None, claim: tuple[str, Claimed] | None) -> Given:
        name = self._name(file)
        entry, said_in, text = (claim[1].entry, claim[0], "") if claim else (None, "", "")
        if file.name == SAMPLE:
            text, own = _sample(read_text(file))
            entry, said_in = (own, name) if own is not None else (entry, said_in)
        else:
            text = read_text(file)
        known = self.problem or (self.suite.find(place.problem_id) if place else None)
        found = given_text(name, text, known or problem_of(file.relative_to(self.root), self.suite))
        if entry is None:
            return replace(found, reported=ReportedResult(source=name))
        return replace(found, reported=reported(name, said_in, entry, self.times.get(found.problem.id)))

    def _claims(self, files: list[Path], places: dict[Path, Place | None]) -> dict[Path, tuple[str, Claimed]]:
        """The claim of each file, and the name of the results that make it: those in the nearest folder."""
        results = {file.parent: read_claims(file) for file in sorted(self.root.rglob(RESULTS))}
        programs: dict[Path, dict[Place, list[Path]]] = {folder: {} for folder in results}
        for file in files:
            folder = next((above for above in file.parents if above in results), None)
            if folder is not None and (place := places[file]) is not None:
                programs[folder].setdefault(place, []).append(file)
        found: dict[Path, tuple[str, Claimed]] = {}
        for folder, claims in results.items():
            name = self._name(folder / RESULTS)
            found |= {file: (name, claim) for file, claim in self._matched(name, claims, programs[folder])}
        return found

    def _matched(
        self, name: str, claims: Iterable[Claimed], programs: dict[Place, list[Path]]
    ) -> list[tuple[Path, Claimed]]:
        """Claims and the files that they are about. The last claim about a file counts."""
        levels = {place.level for place in programs}
        found, missing, unclear = [], [], []
        for claim in claims:
            numbers = f"problem {claim.problem} sample {claim.sample}"
            meant = [claim.level] if claim.level is not None else sorted(levels)
            wanted = (Place(level, claim.problem, claim.sample) for level in meant)
            there = [place for place in wanted if place in programs]
            if len(there) > 1:
                unclear.append(numbers)
            elif not there:
                missing.append(numbers)
            else:
                found += [(file, claim) for file in programs[there[0]]]
        if missing:
            self._note("result", f"in {name} without its program here", missing)
        if unclear:
            self._note("result", f"in {name} without a level, of which there are several here", unclear)
        return found

    def _note(self, noun: str, said: str, about: list[Any]) -> None:
        names = [self._name(one) if isinstance(one, Path) else str(one) for one in about]
        rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        self.notes.append(f"{counted(len(names), noun)} {said}: {', '.join(names[:_NAMED])}{rest}")


def _sample(text: str) -> tuple[str, dict[str, Any] | None]:
    """The program in a published sample, and its claim. Raises UsageError for another file."""
    try:
        value = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not JSON: {error}") from None
    program = value.get("kernel") if isinstance(value, dict) else None
    if not isinstance(program, str):
        raise UsageError("no program in it: `kernel` is expected to be its text")
    claimed = value.get("eval_result")
    if isinstance(claimed, dict) and not is_entry(claimed):
        claimed = next((entry for entry in claimed.values() if is_entry(entry)), None)
    return program, claimed if is_entry(claimed) else None
