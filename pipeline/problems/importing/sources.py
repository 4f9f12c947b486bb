"""What a SOURCE stands for: problem files, or a data set on this machine or on the Hugging Face Hub."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from kernelproof.errors import UsageError
from kernelproof.problems.importing.drafts import Draft, Drafts, split_name
from kernelproof.problems.importing.rows import COLUMNS, drafts_of_rows, holds_data, rows_of
from kernelproof.problems.reading import Place, read_source
from kernelproof.problems.suite import open_suite
from kernelproof.workspace import user_path

_ON_THE_HUB = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def read_drafts(
    source: str,
    *,
    level: int | None = None,
    columns: Mapping[str, str] | None = None,
    split: str | None = None,
    subset: str | None = None,
) -> Drafts:
    """The drafts of all problems in `source`: a directory, a file, or a data set.

    `level` is for problems that have none. `columns`, `split` and `subset` are for data sets: which column
    has which role, one split only, one configuration only. Raises UsageError where there is nothing to read,
    MachineError where a data set needs what this machine lacks.
    """
    path = user_path(source)
    rows = _is_data(path, source)
    if not rows and (columns or split or subset):
        option = "--column" if columns else "--split" if split else "--subset"
        raise UsageError(f"{option} is for data sets, and {source} is none; leave it out")
    if rows:
        there = path if path.exists() else None
        names = {**COLUMNS, **(columns or {})}
        return drafts_of_rows(rows_of(source, there, split, subset), names, set(columns or {}), level)
    return Drafts.of(open_suite(path).places, lambda place: _draft(place, level))


def _is_data(path: Path, source: str) -> bool:
    """Whether `source` is a data set. Raises UsageError where it is nothing at all."""
    if path.exists():
        return holds_data(path)
    if _ON_THE_HUB.fullmatch(source) and not source.startswith((".", "~")):
        return True
    raise UsageError(
        f"{source} does not exist; give a directory, a file, or a data set on the Hugging Face Hub as "
        "OWNER/NAME; for a class of your own: kernelproof problems new FILE"
    )


def _draft(place: Place, level: int | None) -> Draft:
    said = str(place.path)
    number, name = split_name(place.path.stem, said)
    source = read_source(place.path)
    return Draft(place.level if place.level is not None else level, number, name, source, said)
