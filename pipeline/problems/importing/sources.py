"""What a SOURCE stands for: problem files, or a data set on this machine or on the Hugging Face Hub."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelproof.errors import MachineError, UsageError, install_command
from kernelproof.problems.importing.drafts import Draft, Drafts, split_name
from kernelproof.problems.reading import Place, read_source
from kernelproof.problems.suite import open_suite
from kernelproof.workspace import user_path

COLUMNS = {"code": "code", "name": "name", "level": "level", "number": "problem_id"}
"""Role to the column that has it, where nothing else is said. `level` and `number` may be missing."""
_NEEDED = ("code", "name")
_KINDS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".csv": "csv", ".arrow": "arrow"}
_SAVED = ("state.json", "dataset_dict.json")
"""What `save_to_disk` of the package leaves in its directory."""
_WHOLE = re.compile(r"(?:level[ _-]?)?(\d{1,6})", re.IGNORECASE | re.ASCII)

Row = tuple[str, dict[str, Any]]
"""Where a row stands, for messages, and its values."""


def holds_data(path: Path) -> bool:
    """Whether a file or directory is a data set. A directory with Python files is a suite."""
    if path.is_file():
        return path.suffix in _KINDS
    files = [each for pattern in ("*", "*/*") for each in path.glob(pattern)]
    if any(file.suffix == ".py" for file in files):
        return False
    return any(file.suffix in _KINDS and not file.name.startswith(".") for file in files)


def rows_of(source: str, path: Path | None, split: str | None, subset: str | None) -> Iterator[Row]:
    """The rows of the data set at `path`, or of the one on the Hub that `source` names.

    Raises MachineError where the package is missing or the Hub cannot be reached, UsageError for anything
    about the data set itself.
    """
    library = _library()
    with _explained(source, path), tempfile.TemporaryDirectory() as scratch:
        cache = None if path is None else scratch  # the Hub's files are kept where all programs keep them
        loaded = _loaded(library, source, path, subset, cache)
        parts = loaded if isinstance(loaded, dict) else {str(loaded.split or "train"): loaded}
        if split is not None and split not in parts:
            raise UsageError(f"{source} has no split {split!r}; it has {', '.join(map(repr, parts))}")
        for name, part in parts.items():
            if split in (None, name):
                for index, row in enumerate(part):
                    yield f"row {index} of split {name}", row


def drafts_of_rows(
    rows: Iterator[Row], columns: Mapping[str, str], required: Set[str], level: int | None
) -> Drafts:
    """A draft of each row. `columns`: role to column. Those of the roles in `required` must be there.

    Values that are no code, name or number make a row broken. Raises UsageError for a column that is missing.
    """

    def draft(located_row: Row) -> Draft:
        origin, row = located_row
        number, name = split_name(_text(row, columns["name"], origin), origin)
        own = _whole(row.get(columns["number"]), columns["number"], origin)
        its_level = _whole(row.get(columns["level"]), columns["level"], origin)
        return Draft(
            level=level if its_level is None else its_level,
            number=number if own is None else own,
            name=name,
            source=_text(row, columns["code"], origin),
            origin=origin,
        )

    return Drafts.of(_with_columns(rows, columns, required), draft)


def _library() -> Any:
    try:
        import datasets
    except ImportError:
        raise MachineError(
            f"data sets are read by the package datasets; install it: {install_command('datasets')}"
        ) from None
    datasets.disable_progress_bars()
    for name in ("datasets", "huggingface_hub"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is said by `_explained`
    return datasets


def _loaded(library: Any, source: str, path: Path | None, subset: str | None, cache: str | None) -> Any:
    if path is not None and path.is_file():
        return library.load_dataset(_KINDS[path.suffix], data_files=str(path), cache_dir=cache)
    if path is not None and any((path / name).is_file() for name in _SAVED):
        return library.load_from_disk(str(path))
    try:
        return library.load_dataset(str(path) if path else source, subset, cache_dir=cache)
    except ValueError:
        names = library.get_dataset_config_names(str(path) if path else source)
        if len(names) > 1 and subset not in names:
            raise UsageError(
                f"{source} has several subsets: {', '.join(map(repr, names))}; choose with --subset"
            ) from None
        raise


@contextmanager
def _explained(source: str, path: Path | None) -> Iterator[None]:
    """The package's errors in our words."""
    try:
        yield
    except (UsageError, MachineError):
        raise
    except Exception as error:
        if path is not None:
            raise UsageError(
                f"{source} cannot be read as a data set; give a whole parquet, arrow, JSON lines or CSV "
                "file, or a directory of these, with a row for each problem"
            ) from None
        names = {each.__name__ for kind in (type(error), type(error.__cause__)) for each in kind.__mro__}
        if names & {"ConnectionError", "OfflineModeIsEnabled", "TimeoutError", "TransportError"}:
            raise MachineError(
                f"the Hugging Face Hub cannot be reached for {source}; try again later"
            ) from None
        if "DatasetNotFoundError" in names:
            raise UsageError(
                f"no data set {source!r} on the Hugging Face Hub that this machine may read; "
                "check the name, and set HF_TOKEN for a private one"
            ) from None
        first = (str(error.__cause__ or error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(f"{source} cannot be read as a data set: {first[:200]!r}") from None


def _with_columns(rows: Iterator[Row], columns: Mapping[str, str], required: Set[str]) -> Iterator[Row]:
    """The rows. Raises UsageError at one that lacks a column."""
    for origin, row in rows:
        for role in (*_NEEDED, *sorted(required - set(_NEEDED))):
            if columns[role] not in row:
                raise UsageError(
                    f"there is no column {columns[role]!r}, but {', '.join(map(repr, row))}; "
                    f"say which holds the {role}: --column {role}=COLUMN"
                )
        yield origin, row


def _text(row: Mapping[str, Any], column: str, origin: str) -> str:
    value = row[column]
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{origin}: column {column!r} holds no text")
    return value


def _whole(value: Any, column: str, origin: str) -> int | None:
    """The number that `3`, `"3"`, `3.0` or `level_3` is; None for nothing."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    found = _WHOLE.fullmatch(str(value).strip())
    if found is None:
        raise UsageError(f"{origin}: column {column!r} holds {str(value)[:40]!r}, which is no number")
    return int(found[1])


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
