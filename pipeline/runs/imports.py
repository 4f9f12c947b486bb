"""Kernels that somebody published, with the results reported of them: read, and stored as attempts.

KernelBench, and who builds upon it, have written results in several shapes. `parse_results` reads these:

    {"19": [{"sample_id": 0, "correctness": true, "runtime": 0.72}]}       problem, then samples
    {"19": {"sample_id": 0, "correctness": true, "runtime": 0.72}}         before samples were many
    {"1": {"19": {"0": {"correctness": true, "runtime": 0.72}}}}           level, problem, sample
    {"run_info": {"level": 2}, "results": [{"problem_id": 19, "eval_result": {"correctness": true}}]}
    {"level": 1, "problem_id": 19, "eval_result": {"correctness": true, "runtime": 0.72}}     a line for each

Times are in milliseconds, whatever a comment in its source says: they come from CUDA events. A time of -1
says that nothing was measured.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeGuard

from kernelproof.db.reported import Imported
from kernelproof.db.store import Store
from kernelproof.errors import UsageError
from kernelproof.problems import Suite
from kernelproof.problems.suite import PACKAGED
from kernelproof.regular_files import read_regular
from kernelproof.runs.candidates import (
    SUFFIXES,
    CandidateInput,
    Place,
    candidate_from_text,
    note_on,
    place_of,
    problem_of,
    read_candidates,
    read_each,
)
from kernelproof.runs.files import Folder, LeftOut
from kernelproof.types import Problem, RunSettings, Status, VerifySettings
from kernelproof.types.reproduction import ReportedResult, ratio
from kernelproof.wording import counted

RESULTS = ("results.jsonl", "detailed_results.json", "eval_results.json")
"""Files of results. Where a folder has several, the last one that has a program counts."""
_ENTRY = frozenset({"correctness", "correct", "compiled", "runtime"})
_NUMBER = re.compile(r"(?:level[_-]?)?(\d{1,6})")
_LONGEST_NAME = 200
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_CLOSERS = {"{": "}", "[": "]"}


class ReportedEntry(NamedTuple):
    level: int | None
    """None where the file does not say."""
    problem: int
    sample: int
    entry: dict[str, Any]
    """Empty where there is no result: the program was never evaluated, say."""


Times = Mapping[str, float]
"""Problem id to milliseconds of its reference."""


def parse_results(name: str, content: bytes) -> tuple[tuple[ReportedEntry, ...], str | None]:
    """The entries in a file of results of this name, and what is wrong with it, if something is."""
    entries: list[ReportedEntry] = []
    broken = None
    for text in filter(bytes.strip, content.splitlines()) if name.endswith(".jsonl") else [content]:
        try:
            value = _parsed(text)
        except (ValueError, RecursionError) as error:
            broken, value = broken or error, _before(error)
        entries += _entries(value)
    if broken is not None:
        return tuple(entries), (
            f"{name} is not JSON, or was cut off ({broken}): {counted(len(entries), 'result')} in it could "
            "be read; get it whole and run the same command again: then the others are added"
        )
    if not entries and content.strip() != b"{}":
        return (), f"{name} holds no results: no entry by problem says `correctness` or `runtime`"
    return tuple(entries), None


def _entries(
    value: Any, path: tuple[int, ...] = (), listed: bool = False, level: Any = None
) -> Iterator[ReportedEntry]:
    """All entries in a value. `path`: the numbers that led to it; `listed`: whether it stands in a list."""
    if path and is_entry(value):
        if len(path) == 1 or (len(path) == 2 and (listed or "sample_id" in value)):
            path = (*path, -1 if (sample := _number(value.get("sample_id", 0))) is None else sample)
        yield ReportedEntry(path[-3] if len(path) > 2 else _level(value), path[-2], path[-1], value)
    elif isinstance(value, list):
        for each in value:
            yield from _entries(each, path, True, level)
    elif isinstance(value, dict) and (problem := _number(value.get("problem_id"))) is not None:
        result = value.get("eval_result", value)
        entry = result if is_entry(result) else {}
        sample = _number(value.get("sample_id", entry.get("sample_id", 0)))
        yield ReportedEntry(_number(value.get("level", level)) or _level(entry), problem, sample or 0, entry)
    elif isinstance(value, dict) and len(path) < 3:
        info = value.get("run_info")
        for key, inner in value.items():
            if (number := _number(key)) is not None:
                yield from _entries(inner, (*path, number))
            elif key == "results":
                yield from _entries(inner, level=info.get("level") if isinstance(info, dict) else None)


def _level(entry: dict[str, Any]) -> int | None:
    metadata = entry.get("metadata")
    return _number(metadata.get("level")) if isinstance(metadata, dict) else None


def is_entry(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a value is what KernelBench writes of one program."""
    return isinstance(value, dict) and not _ENTRY.isdisjoint(value)


def _number(value: Any) -> int | None:
    """A number from 0, written as one or as text (`19`, `level_1`)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 10**6 else None
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) if found else None


def reported(
    source: str, results_file: str, entry: dict[str, Any], baseline_ms: float | None
) -> ReportedResult:
    """An entry as a reported result. `baseline_ms`: the reference's time, where the entry has none."""
    stats = entry.get("runtime_stats")
    runtime = _time(entry.get("runtime")) or _time(stats.get("mean") if isinstance(stats, dict) else None)
    baseline = _time(entry.get("ref_runtime")) or baseline_ms
    correct = _truth(entry.get("correctness", entry.get("correct")))
    derived = ratio(baseline, runtime) if correct is not False else None
    return ReportedResult(
        source=source,
        said_in=results_file,
        compiled=_truth(entry.get("compiled")),
        correct=correct,
        runtime_ms=runtime,
        baseline_ms=baseline,
        speedup=_time(entry.get("speedup")) or derived,
        device=_device(entry),
        raw=entry,
    )


def _device(entry: dict[str, Any]) -> str | None:
    for holder in (entry.get("metadata"), entry.get("runtime_stats"), entry):
        if isinstance(holder, dict) and isinstance(name := holder.get("hardware"), str) and name:
            return name[:_LONGEST_NAME]
    return None


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _time(value: Any) -> float | None:
    """A positive number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def read_times(file: Path) -> Times:
    """The reference's times in a file of KernelBench's `results/timing`. Raises UsageError for others."""
    value = _json(file)
    times: dict[str, float] = {}
    for folder, problems in value.items() if isinstance(value, dict) else ():
        level = _number(folder)
        for name, stats in problems.items() if isinstance(problems, dict) and level is not None else ():
            number = re.match(r"\d{1,6}", name)
            mean = _time(stats.get("mean")) if isinstance(stats, dict) else None
            if number is not None and mean is not None:
                times[Place(level or 0, int(number[0]), 0).problem_id] = mean
    if not times:
        raise UsageError(f'{file} holds no times; expected {{"level1": {{"1_name.py": {{"mean": 2.66}}}}}}')
    return times


def _json(file: Path) -> Any:
    try:
        return _parsed(read_regular(file))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not JSON: {error}") from None


def _parsed(content: bytes) -> Any:
    return json.loads(content, parse_constant=lambda _: None)  # no NaN, no infinity


def _before(error: Exception) -> Any:
    """The values before the point where JSON breaks off, without the entry there: half may say otherwise."""
    if not isinstance(error, json.JSONDecodeError):
        return {}
    inside: list[list[Any]] = []  # of each open container: what closes it, and whether it is an entry
    end, closers = 0, "{}"
    for token in _TOKEN.finditer(error.doc, 0, error.pos):
        if token[0] in _CLOSERS:
            inside.append([_CLOSERS[token[0]], False])
        elif token[0] in ("}", "]"):
            inside[-1:] = []
            if not any(entry for _, entry in inside):
                end, closers = token.end(), "".join(closer for closer, _ in reversed(inside))
        elif inside and token[0].strip('"') in _ENTRY:
            inside[-1][1] = True
    return json.loads(error.doc[:end] + closers, parse_constant=lambda _: None)


SAMPLE = "kernel.json"
"""A published sample of KernelBench: its program, and its reported result."""
_NO_PROGRAM = re.compile(r"(?:^|_)prompt(?:_|\.)|^eval_result|(?:^|_)log(?:_|\.)")
_RESPONSE = "_response"
_ANSWERS = re.compile(r"(?:^|[_-])(?:raw|responses?|answers?|completions?)(?:$|[_-])", re.IGNORECASE)
"""Folders of raw answers, beside the folder of the programs that were taken from them."""


@dataclass(frozen=True)
class ImportInput:
    candidates: tuple[CandidateInput, ...]
    notes: tuple[str, ...] = ()


def read_import(
    path: Path,
    suite: Suite,
    problem: Problem | None,
    times: Times | None = None,
    *,
    follow_links: bool = False,
) -> ImportInput:
    """The programs in a folder or a file of lines. `problem` is that of all of them, where given.

    `times`: the reference's milliseconds by problem, for results that have none. `follow_links`: also those
    that lead out of the folder. Raises UsageError when there is nothing, and one that says of every file or
    line what is wrong with it.
    """
    if path.is_dir():
        return _Import(Folder(path, follow_links=follow_links), suite, problem, times or {}).read()
    lines = read_candidates(path, suite, problem)
    return ImportInput(
        tuple(replace(one, reported=one.reported or ReportedResult(source=one.id)) for one in lines)
    )


@dataclass
class _Import:
    folder: Folder
    suite: Suite
    problem: Problem | None
    times: Times
    notes: list[str] = field(default_factory=list)

    def read(self) -> ImportInput:
        root = self.folder.root
        files = self.folder.files(lambda name: name.endswith(SUFFIXES) or name in (SAMPLE, *RESULTS))
        results = [file for file in files if file.name in RESULTS]
        files = [file for file in files if file.name not in RESULTS]
        base = PurePath(self.folder.root.resolve().name)
        places = {file: place_of(base / self.folder.name(file)) for file in files}
        if self.problem is None and self.suite.name == PACKAGED and any(places.values()):
            raise UsageError(
                f"{root} numbers its problems as KernelBench does, and the packaged problems have other "
                "numbers; give --suite DIRECTORY, a checkout of KernelBench"
            )
        files = self._programs(files, places)
        if not files:
            raise UsageError(f"{root} holds no programs: no {', '.join(SUFFIXES)} and no {SAMPLE} below it")
        entries = self._entries_by_file(results, files, places)

        def one(file: Path) -> CandidateInput:
            return self._candidate(file, places[file], entries.get(file))

        return ImportInput(tuple(read_each(files, one, self.folder.name, self.notes)), tuple(self.notes))

    def _programs(self, files: list[Path], places: dict[Path, Place | None]) -> list[Path]:
        """The files without prompts, logs, and answers whose program lies beside them.

        Texts that name no problem are left out where other files do, with a note.
        """
        named = any(places.values())
        programs = {
            (file.parent, places[file]) for file in files if places[file] and _RESPONSE not in file.stem
        }
        taken: dict[object, set[Place | None]] = {}  # by what lies around and in a folder of the run
        for file in files:
            below = file.relative_to(self.folder.root).parts
            for at in range(len(below) if file.suffix == ".py" and places[file] else 0):
                taken.setdefault((below[:at], below[at + 1 : -1]), set()).add(places[file])
        kept: list[Path] = []
        strange: list[Path] = []
        without: list[Path] = []  # raw answers of which no program is there
        for file in files:
            is_text = file.suffix in (".txt", ".md")
            if is_text and _NO_PROGRAM.search(file.name.lower()):
                continue
            if _RESPONSE in file.stem and (file.parent, places[file]) in programs:
                continue
            if is_text and (beside := self._beside(file)) in taken:
                if places[file] not in taken[beside]:
                    without.append(file)
                continue
            (strange if is_text and named and places[file] is None else kept).append(file)
        if strange:
            self._note("text", "left out, without a problem in its name", strange)
        if without:
            said = "left out, of which no program was taken there; to read them, import their folder alone"
            self._note("answer", said, without)
        return kept

    def _beside(self, file: Path) -> object:
        """Of a raw answer: the folders around the folder of answers, and those in it."""
        below = file.relative_to(self.folder.root).parts
        at = next((at for at, part in enumerate(below[:-1]) if _ANSWERS.search(part)), None)
        return None if at is None else (below[:at], below[at + 1 : -1])

    def _candidate(
        self, file: Path, place: Place | None, reported_entry: tuple[str, ReportedEntry] | None
    ) -> CandidateInput:
        name = self.folder.name(file)
        entry, results_file, text = (
            (reported_entry[1].entry, reported_entry[0], "") if reported_entry else (None, "", "")
        )
        if file.name == SAMPLE:
            text, own = _sample(self.folder.text(file))
            entry, results_file = (own, name) if own is not None else (entry, results_file)
        else:
            text = self.folder.text(file)
        known = self.problem or (self.suite.find(place.problem_id) if place else None)
        found = candidate_from_text(name, text, known or problem_of(PurePath(name), self.suite))
        if entry is None:
            return replace(found, reported=ReportedResult(source=name))
        return replace(found, reported=reported(name, results_file, entry, self.times.get(found.problem.id)))

    def _entries_by_file(
        self, results: list[Path], files: list[Path], places: dict[Path, Place | None]
    ) -> dict[Path, tuple[str, ReportedEntry]]:
        """The reported entry of each program, and the nearest file of results that holds it."""
        programs: dict[Path, dict[Place, list[Path]]] = {file.parent: {} for file in results}
        for file in files:
            folder = next((above for above in file.parents if above in programs), None)
            if folder is not None and (place := places[file]) is not None:
                programs[folder].setdefault(place, []).append(file)
        found: dict[Path, tuple[str, ReportedEntry]] = {}
        for file in sorted(results, key=lambda file: RESULTS.index(file.name)):
            name = self.folder.name(file)
            matched = self._matched(name, self._read_results(file), programs[file.parent])
            found |= {program: (name, reported_entry) for program, reported_entry in matched}
        return found

    def _read_results(self, file: Path) -> tuple[ReportedEntry, ...]:
        """What can be read of a file of results; what cannot be stops nothing, and is noted."""
        name = self.folder.name(file)
        try:
            entries, wrong = parse_results(name, self.folder.read(file))
        except LeftOut as error:
            entries, wrong = (), f"{name}: {error}"
        self.notes += [wrong] if wrong else []
        return entries

    def _matched(
        self, name: str, entries: Iterable[ReportedEntry], programs: dict[Place, list[Path]]
    ) -> list[tuple[Path, ReportedEntry]]:
        """Entries and the programs that they are about. The last one about a program counts."""
        levels = {place.level for place in programs}
        found, missing, unclear, silent = [], [], [], []
        for reported_entry in entries:
            numbers = f"problem {reported_entry.problem} sample {reported_entry.sample}"
            meant = [reported_entry.level] if reported_entry.level is not None else sorted(levels)
            wanted = (Place(level, reported_entry.problem, reported_entry.sample) for level in meant)
            there = [place for place in wanted if place in programs]
            if not reported_entry.entry:
                silent.append(numbers)
            elif len(there) > 1:
                unclear.append(numbers)
            elif not there:
                missing.append(numbers)
            else:
                found += [(file, reported_entry) for file in programs[there[0]]]
        if silent:
            self._note("row", f"in {name} without a result", silent)
        if missing:
            self._note("result", f"in {name} without its program here", missing)
        if unclear:
            self._note("result", f"in {name} without a level, of which there are several here", unclear)
        return found

    def _note(self, noun: str, sentence: str, about: Iterable[Path | str]) -> None:
        names = [self.folder.name(one) if isinstance(one, Path) else one for one in about]
        self.notes.append(note_on(noun, sentence, names))


def _sample(text: str) -> tuple[str, dict[str, Any] | None]:
    """The program in a published sample, and its result. Raises UsageError for another file."""
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


@dataclass(frozen=True)
class StoredImport:
    run_id: int
    attempts: tuple[int, ...]
    """In the order in which they were read."""
    new: int
    with_claim: int
    to_judge: tuple[int, ...]
    """Attempts that hold a program."""


def store_import(store: Store, programs: ImportInput, settings: RunSettings) -> StoredImport:
    """Stores all or nothing. Programs that the run has stay as they are; a new result is appended."""
    items = [
        Imported(one.problem, one.response, one.extraction, one.reported or ReportedResult(source=one.id))
        for one in programs.candidates
    ]
    run_id, kept = store.add_imported(settings, items)
    return StoredImport(
        run_id=run_id,
        attempts=tuple(one.attempt_id for one in kept),
        new=sum(one.new for one in kept),
        with_claim=sum(item.reported.has_claim for item in items),
        to_judge=tuple(
            one.attempt_id for one, item in zip(kept, items, strict=True) if item.extraction.candidate
        ),
    )


def import_run(model: str, name: str | None, verify: VerifySettings) -> RunSettings:
    """The run that keeps what somebody's model wrote, judged with these settings."""
    return RunSettings(name=name, kind="import", model=model, verify=verify)


def statuses_of(store: Store, stored: StoredImport) -> dict[int, Status | None]:
    """How the attempts of an import have ended; None where they are still to be judged."""
    states = {state.id: state.status for state in store.attempts_of(stored.run_id).values()}
    return {number: states[number] for number in stored.attempts}
