"""A run as KernelBench's own scripts read it: a folder for each level.

    level1/eval_results.json                            {"3": [{"sample_id": 0, "compiled": true, ...}]}
    level1/baseline_time_eager.json                     {"level1": {"3_layer_norm.py": {"mean": 2.66}}}
    level1/level_1_problem_3_sample_0_kernel.py         the program

`kernelproof import` reads such folders. Only numbers stand in the names of files.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from kernelproof.db.scores.choosing import Chosen, ChosenAttempt
from kernelproof.errors import UsageError
from kernelproof.report.export.gathering import Export, Row
from kernelproof.report.export.writing import json_of, open_text

RESULTS = "eval_results.json"
BASELINE = "baseline_time_eager.json"
_PLACE = re.compile(r"level(\d{1,6})/(\d{1,6})")


class Written(NamedTuple):
    """Counts of the samples: those that are written, and those that are left out."""

    samples: int
    elsewhere: int
    """Samples of problems that have no number in a level."""
    unjudged: int
    """Samples that this machine or the server failed, not the model."""


def write(export: Export, folder: Path) -> Written:
    """Writes the deciding turn of each sample. Raises UsageError for more than one run or setting."""
    chosen = export.chosen.deciding()
    _require_one(export, chosen)
    places = ((_place(each.problem_id), number) for number, each in enumerate(chosen))
    known = sorted((place, number) for place, number in places if place is not None)
    counts = {"samples": 0, "unjudged": 0}
    ordered = chosen.only(np.array([number for _, number in known], np.int64))
    for level, samples in groupby(ordered, key=lambda each: (_place(each.problem_id) or (0, 0))[0]):
        below = folder / f"level{level}"
        below.mkdir()
        _Level(export, below, level, counts).write(samples)
    return Written(counts["samples"], len(chosen) - len(known), counts["unjudged"])


def _place(problem_id: str) -> tuple[int, int] | None:
    found = _PLACE.fullmatch(problem_id)
    return (int(found[1]), int(found[2])) if found else None


def _require_one(export: Export, chosen: Chosen) -> None:
    """KernelBench numbers the samples of one model, and knows no settings."""
    kinds = sorted({(each.run_id, str(each.setting.device), each.setting) for each in chosen}, key=str)
    if len(kinds) > 1:
        said = ", ".join(
            f"run {run} ({setting.backend}, {setting.size}, {setting.device or 'no device'}, "
            f"{setting.numerics}, {setting.purity})"
            for run, _, setting in kinds[:5]
        )
        more = f" and {len(kinds) - 5} more" if len(kinds) > 5 else ""
        raise UsageError(
            f"KernelBench's files hold one run under one setting, and there are: {said}{more}; choose with "
            "--run, --gpu, --size and the other filters"
        )


class _Level:
    """The files of one level."""

    def __init__(self, export: Export, folder: Path, level: int, counts: dict[str, int]) -> None:
        self._export, self._folder, self._level, self._counts = export, folder, level, counts

    def write(self, samples: Iterator[ChosenAttempt]) -> None:
        """Problem by problem, the samples of one in memory without their texts."""
        with open_text(self._folder / RESULTS) as results, open_text(self._folder / BASELINE) as baseline:
            results.write("{")
            baseline.write(f'{{"level{self._level}": {{')
            before = ["", ""]
            for problem_id, some in groupby(samples, key=lambda each: each.problem_id):
                self._problem(problem_id, some, (results, baseline), before)
            results.write("\n}\n")
            baseline.write("\n}}\n")

    def _problem(
        self,
        problem_id: str,
        some: Iterator[ChosenAttempt],
        files: tuple[TextIO, TextIO],
        before: list[str],
    ) -> None:
        number = (_place(problem_id) or (0, 0))[1]
        entries: list[dict[str, Any]] = []
        times: list[float] = []
        name = ""
        for row in self._export.rows(some):
            if not row.status.counts_against_model:
                self._counts["unjudged"] += 1
                continue
            entries.append(entry(row))
            name = f"{number}_{row.attempt.problem.name}.py"
            if row.measured is not None:
                times.append(row.measured.baseline_ms)
            self._program(number, row)
        if entries:
            self._counts["samples"] += len(entries)
            files[0].write(f'{before[0]}\n    "{number}": {json_of(entries)}')
            before[0] = ","
        if times:
            files[1].write(f"{before[1]}\n    {json_of(name)}: {json_of({'mean': statistics.median(times)})}")
            before[1] = ","

    def _program(self, number: int, row: Row) -> None:
        source = row.attempt.source
        if source is not None:
            sample = row.attempt.key.sample
            file = f"level_{self._level}_problem_{number}_sample_{sample}_kernel.py"
            (self._folder / file).write_bytes(source.encode("utf-8", "surrogatepass"))


def entry(row: Row) -> dict[str, Any]:
    """A sample as KernelBench writes it. Times are in milliseconds; -1 says that nothing was measured."""
    measured = row.measured
    metadata: dict[str, Any] = {
        "hardware": row.setting.device,
        "status": row.status.value,
        "reason": row.reason,
        "kernelproof_attempt": row.attempt.id,
        "turn": row.attempt.key.turn,
    }
    stats: dict[str, Any] = {}
    if measured is not None:
        times = [time for block in measured.candidate_samples_ms for time in block]
        stats = {"mean": measured.candidate_ms, "num_trials": len(times)}
        if times:
            stats |= {"std": statistics.pstdev(times), "min": min(times), "max": max(times)}
        metadata |= {"speedup": measured.speedup, "pace": measured.pace.value}
    return {
        "sample_id": row.attempt.key.sample,
        "compiled": row.built,
        "correctness": row.status.value == "correct",
        "metadata": metadata,
        "runtime": measured.candidate_ms if measured else -1.0,
        "runtime_stats": stats,
    }
