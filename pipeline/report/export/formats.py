"""The formats of `kernelproof export`: Parquet and JSON Lines here, the shapes of other tools a file each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path

from kernelproof.choices import RewardName
from kernelproof.report.export import huggingface, inspect_log, kernelbench, pairs
from kernelproof.report.export.columns import FIELDS, Export
from kernelproof.report.export.writing import json_of, new_file, new_folder, open_text
from kernelproof.report.exporting import write_parquet
from kernelproof.wording import counted

ATTEMPT: dict[str, str] = {
    "format": "`kernelproof-attempt-1`.",
    "counts": "For each setting under which it counts: `verification_id` (null for none), `setting`, and "
    "`decides`, whether the sample counts by it.",
    "id": "The attempt's number.",
    "run_id": "Its run's number.",
    "run": "All settings of the run.",
    "key": "Problem, SHA-256 of its source, sample from 0, turn from 1.",
    "problem": "The problem with its source.",
    "parent_id": "The attempt that it repairs or improves.",
    "plan": "Number of the parent's plan that it carries out, from 1.",
    "status": "How the attempt ended.",
    "created": "When it began (UTC, ISO 8601).",
    "finished": "When the attempt ended.",
    "prompt": "The question: system, history, user, template; null for a program given as a file.",
    "responses": "All that the server said, errors included, in their order; the first answer counts. `raw` "
    "is the server's whole JSON.",
    "extraction": "The program that was found, or why there is none.",
    "verifications": "Every verification with its settings, environment, seeds, builds, findings, checks, "
    "samples of both clocks, and whether it is retracted.",
    "reported": "The claims about an imported program.",
    "alterations": "Texts that were edited since they were stored; empty for none.",
}
"""The keys of a line of `jsonl`. Those below them are the fields of the records in `kernelproof.types`."""


def write(form: str, export: Export, output: Path, *, reward: RewardName, licence: str) -> list[str]:
    """Writes an export in the format of that name; what is to be said of it, the most important first.

    `reward`: of pairs; `licence`: of a data set for Hugging Face. Raises UsageError where the output is in
    the way, MachineError where it cannot be written.
    """
    writers: dict[str, Callable[[Export, Path], list[str]]] = {
        "jsonl": _attempts,
        "parquet": _parquet,
        "pairs": partial(pairs.write, reward=reward),
        "huggingface": partial(huggingface.write, licence=licence),
        "kernelbench": kernelbench.write,
        "inspect": inspect_log.write,
    }
    opened = new_file if form in ("jsonl", "parquet", "pairs") else new_folder
    with opened(output) as path:
        return writers[form](export, path)


def _parquet(export: Export, path: Path) -> list[str]:
    return [counted(write_parquet(FIELDS, (row.values() for row in export.rows()), path), "row")]


def _attempts(export: Export, path: Path) -> list[str]:
    """A line for each attempt, whatever settings it counts under."""
    by_attempt = export.chosen.by_attempt()
    numbers = dict.fromkeys(each.attempt_id for each in by_attempt)
    groups = groupby(by_attempt, key=lambda each: each.attempt_id)
    with open_text(path) as file:
        for (_, group), stored in zip(groups, export.store.load_attempts(numbers), strict=True):
            counts = [
                {
                    "verification_id": each.verification_id,
                    "setting": each.setting.model_dump(mode="json"),
                    "decides": each.decides,
                }
                for each in group
            ]
            attempt = stored.model_dump(mode="json")
            file.write(json_of({"format": "kernelproof-attempt-1", "counts": counts, **attempt}) + "\n")
    return [counted(len(numbers), "attempt")]
