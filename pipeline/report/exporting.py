"""Flat rows as CSV, Markdown or Parquet. A model's text stays text in all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from kernelproof.errors import MachineError, writing
from kernelproof.report.board_columns import Cell, Field, Flat
from kernelproof.report.plain import clean, whole
from kernelproof.report.tables import csv_text

GROUP = 500
"""Rows in a group of a Parquet file, and in memory."""


def as_csv(rows: Flat) -> str:
    """A line of names, then one for each row."""
    return csv_text(tuple(field.name for field in rows.fields), rows.rows)


def as_markdown(rows: Flat) -> str:
    """A table for GitHub and others; columns in which no row has anything are left out."""
    kept = [i for i in range(len(rows.fields)) if any(row[i] not in (None, "") for row in rows.rows)]
    heads = [rows.fields[i] for i in kept]
    lines = [
        _line([field.name for field in heads]),
        _line(["---:" if field.kind in (int, float) else "---" for field in heads]),
        *(_line([_markdown(row[i]) for i in kept]) for row in rows.rows),
    ]
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return markdown_text(cell)


def markdown_text(value: object) -> str:
    """A text as one line of Markdown that shows it, and nothing more."""
    text = " ".join(clean(str(value)).split())
    return re.sub(r"[\\`*_\[\]<>|~!&#]", lambda found: f"&#{ord(found[0])};", text)


def write_parquet(
    fields: Sequence[Field],
    rows: Iterable[Iterable[Any]],
    path: Path,
    text: Callable[[str], str] = whole,
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
            f"the package pyarrow is missing; install it (pip install 'kernelproof[parquet]'), or {otherwise}"
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
