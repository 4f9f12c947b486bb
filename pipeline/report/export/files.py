"""Writes CSV, Markdown, LaTeX, Parquet and JSON: a file or folder has its name only when it is whole."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from kernelproof.errors import MachineError, UsageError, install_command, writing
from kernelproof.report.board_columns import Cell, Field, Flat
from kernelproof.report.layout import csv_text
from kernelproof.report.plain import clean, finite, whole
from kernelproof.wording import counted


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """The path to write to, beside `path`, whose place it takes at the end. After an error nothing is left.

    Raises UsageError for a directory, MachineError where the file cannot be written.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name the file that is to be written in it")
    with _beside(path) as partial:
        partial.touch()
        yield partial


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    if os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
        raise UsageError(f"{path} is there already; choose another name, or move it away")
    with _beside(path) as partial:
        partial.mkdir()
        yield partial


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    with _ended_politely(), writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield partial
            partial.replace(path)  # onto an empty folder, too
        finally:
            if partial.is_dir():
                shutil.rmtree(partial)
            partial.unlink(missing_ok=True)


@contextmanager
def _ended_politely() -> Iterator[None]:
    """Makes SystemExit of SIGTERM, so that what is half written is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def open_text(path: Path) -> TextIO:
    """A file for ASCII text."""
    return path.open("w", encoding="ascii", newline="\n")


def json_of(value: Any, indent: int | None = None) -> str:
    """ASCII JSON that strict readers take: infinities and NaN as null, texts as `whole` has them."""
    try:
        text = json.dumps(value, allow_nan=False, indent=indent)
    except ValueError:  # an infinity or a NaN, or a value within itself
        text = "\\ud"
    if "\\ud" not in text:  # there is nothing to replace, as almost always
        return text
    return json.dumps(_whole(finite(value)), allow_nan=False, indent=indent)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value


def left_out(count: int, noun: str, why: str) -> list[str]:
    """A sentence about what an export lacks; none where it lacks nothing."""
    return [f"{counted(count, noun)} left out: {why}."] if count else []


GROUP = 500
"""Rows in a group of a Parquet file, and in memory."""


def as_csv(rows: Flat) -> str:
    return csv_text(tuple(field.name for field in rows.fields), rows.rows)


class Typeset(NamedTuple):
    heading: str
    titles: Sequence[str]
    numbers: Sequence[bool]
    """For each column whether it stands on the right."""
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]


def every_column(rows: Flat) -> Typeset:
    """All columns of an export; those in which no row has anything are left out."""
    kept = [i for i in range(len(rows.fields)) if any(row[i] not in (None, "") for row in rows.rows)]
    heads = [rows.fields[i] for i in kept]
    return Typeset(
        heading="",
        titles=[field.name for field in heads],
        numbers=[field.kind in (int, float) for field in heads],
        rows=[[_text(row[i]) for i in kept] for row in rows.rows],
        notes=(),
    )


def _text(cell: Cell) -> str:
    return "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def as_markdown(tables: Iterable[Typeset]) -> str:
    """The tables for GitHub and others, each with its heading before and its notes after."""
    return "\n".join(map(_markdown, tables))


def _markdown(table: Typeset) -> str:
    heading = [f"**{markdown_text(table.heading)}**", ""] if table.heading else []
    rule = ["---:" if number else "---" for number in table.numbers]
    rows = [list(map(markdown_text, row)) for row in table.rows]
    cells = [f"| {' | '.join(line)} |" for line in (table.titles, rule, *rows)]
    notes = [line for note in table.notes for line in ("", markdown_text(note))]
    return "\n".join((*heading, *cells, *notes)) + "\n"


_MARKDOWN = re.compile(
    # Kept are intervals, and `_` within a word, which marks nothing.
    r"(?P<kept>\[\d[\d., ]*\](?![(\[:])|(?<=[^\W_])_(?=[^\W_]))"
    r"|[\\`*_\[\]<>|~!&#]"
)


def markdown_text(value: object) -> str:
    """A text as one line of Markdown that shows it, and nothing more."""
    text = " ".join(clean(str(value)).split())
    return _MARKDOWN.sub(lambda found: found["kept"] or f"&#{ord(found[0])};", text)


def as_latex(tables: Iterable[Typeset]) -> str:
    """The tables as LaTeX, each a `table` with its heading as the caption."""
    return "% \\usepackage{booktabs}\n" + "\n".join(map(_latex, tables))


def _latex(table: Typeset) -> str:
    caption = [f"\\caption{{{latex_text(table.heading)}}}"] if table.heading else []
    lines = [f"{' & '.join(map(latex_text, line))} \\\\" for line in (table.titles, *table.rows)]
    notes = [f"\n{{\\footnotesize {latex_text(note)}}}" for note in table.notes]
    columns = "".join("r" if number else "l" for number in table.numbers)
    return "\n".join(
        (
            *("\\begin{table}", "\\centering", *caption, f"\\begin{{tabular}}{{{columns}}}"),
            *("\\toprule", lines[0], "\\midrule", *lines[1:], "\\bottomrule", "\\end{tabular}"),
            *(*notes, "\\end{table}\n"),
        )
    )


_LATEX = {
    "\\": "\\textbackslash{}",
    "^": "\\textasciicircum{}",
    "~": "\\textasciitilde{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    "`": "\\textasciigrave{}",
    '"': "''",
    "×": "$\\times$",
    "±": "$\\pm$",
    "†": "$\\dagger$",
    "→": "$\\to$",
    "·": "\\textperiodcentered{}",
    "…": "\\ldots{}",
} | {sign: f"\\{sign}" for sign in "{}$&#%_"}
_SIGNS = re.compile("|".join((*map(re.escape, _LATEX), "-(?=-)")))


def latex_text(value: object) -> str:
    """A text as one line of LaTeX that shows it, and nothing more."""
    text = " ".join(clean(str(value)).split())
    safe = _SIGNS.sub(lambda found: _LATEX.get(found[0], "-{}"), text)
    return "{}" + safe if safe.startswith(("[", "*")) else safe  # `\\[` and `\\*` mean something


def write_parquet(
    fields: Sequence[Field], rows: Iterable[Iterable[Any]], path: Path, text: Callable[[str], str] = whole
) -> int:
    """Writes a Parquet file, whose schema says each column's meaning; how many rows it has. Some hundred
    rows at a time are in memory. `text`: what becomes of a text.

    Raises MachineError where pyarrow is missing, or the file cannot be written.
    """
    pyarrow = require_pyarrow("take another format")
    from pyarrow import parquet

    schema, rest, count = arrow_schema(fields), iter(rows), 0
    with writing(path), parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := [[_arrow(cell, text) for cell in row] for row in islice(rest, GROUP)]:
            columns = zip(*group, strict=True)
            arrays = [pyarrow.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
            count += len(group)
        if not count:
            writer.write_table(schema.empty_table())
    return count


def _arrow(cell: Any, text: Callable[[str], str]) -> Any:
    if isinstance(cell, str):
        return text(cell)
    if isinstance(cell, list):
        return [{name: text(words) for name, words in message.items()} for message in cell]
    return cell


def require_pyarrow(otherwise: str) -> Any:
    """The package. Raises MachineError, with what to do `otherwise`, where it is missing."""
    try:
        import pyarrow
    except ImportError:
        raise MachineError(
            f"the package pyarrow is missing; install it ({install_command('parquet')}), or {otherwise}"
        ) from None
    return pyarrow


def arrow_schema(fields: Sequence[Field]) -> Any:
    """The columns as Arrow has them. A list is one of messages: of roles and contents."""
    import pyarrow

    message = pyarrow.struct([("role", pyarrow.string()), ("content", pyarrow.string())])
    types: dict[type, Any] = {
        str: pyarrow.string(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
        list: pyarrow.list_(message),
    }
    return pyarrow.schema(
        [
            pyarrow.field(field.name, types[field.kind], metadata={"meaning": field.meaning})
            for field in fields
        ]
    )
