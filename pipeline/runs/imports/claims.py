"""What KernelBench's files claim: `eval_results.json` of a run, and its files of reference times.

KernelBench, and who builds upon it, have written results in several shapes. `parse_claims` reads these:

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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from kernelproof.errors import UsageError
from kernelproof.regular_files import read_regular
from kernelproof.runs.candidates import Place
from kernelproof.types.reported import ReportedResult, ratio
from kernelproof.wording import counted

RESULTS = ("results.jsonl", "detailed_results.json", "eval_results.json")
"""Files of results. Where a folder has several, the last one that has a program counts."""
_ENTRY = frozenset({"correctness", "correct", "compiled", "runtime"})
_NUMBER = re.compile(r"(?:level[_-]?)?(\d{1,6})")
_LONGEST_NAME = 200
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_CLOSERS = {"{": "}", "[": "]"}


class Claimed(NamedTuple):
    """One entry of a file of results."""

    level: int | None
    """None where the file does not say."""
    problem: int
    sample: int
    entry: dict[str, Any]
    """Empty where there is no result: the program was never evaluated, say."""


Times = Mapping[str, float]
"""Problem id to milliseconds of its reference."""


def parse_claims(name: str, content: bytes) -> tuple[tuple[Claimed, ...], str | None]:
    """The entries in a file of results of this name, and what is wrong with it, if something is."""
    claims: list[Claimed] = []
    broken = None
    for text in filter(bytes.strip, content.splitlines()) if name.endswith(".jsonl") else [content]:
        try:
            value = _parsed(text)
        except (ValueError, RecursionError) as error:
            broken, value = broken or error, _before(error)
        claims += _entries(value)
    if broken is not None:
        return tuple(claims), (
            f"{name} is not JSON, or was cut off ({broken}): {counted(len(claims), 'result')} in it could be "
            "read; get it whole and run the same command again: then the others are added"
        )
    if not claims and content.strip() != b"{}":
        return (), f"{name} holds no results: no entry by problem says `correctness` or `runtime`"
    return tuple(claims), None


def _entries(
    value: Any, path: tuple[int, ...] = (), listed: bool = False, level: Any = None
) -> Iterator[Claimed]:
    """All entries in a value. `path`: the numbers that led to it; `listed`: whether it stands in a list."""
    if path and is_entry(value):
        if len(path) == 1 or (len(path) == 2 and (listed or "sample_id" in value)):
            path = (*path, -1 if (sample := _number(value.get("sample_id", 0))) is None else sample)
        yield Claimed(path[-3] if len(path) > 2 else _level(value), path[-2], path[-1], value)
    elif isinstance(value, list):
        for each in value:
            yield from _entries(each, path, True, level)
    elif isinstance(value, dict) and (problem := _number(value.get("problem_id"))) is not None:
        result = value.get("eval_result", value)
        entry = result if is_entry(result) else {}
        sample = _number(value.get("sample_id", entry.get("sample_id", 0)))
        yield Claimed(_number(value.get("level", level)) or _level(entry), problem, sample or 0, entry)
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
    """An entry as a claim. `baseline_ms`: the reference's time, where the entry has none."""
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
