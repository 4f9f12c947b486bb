"""Parquet: some hundred rows at a time go to the file."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from kernelproof.report.export.columns import FIELDS
from kernelproof.report.export.gathering import Row
from kernelproof.report.export.writing import whole
from kernelproof.report.exporting import arrow_schema, require_pyarrow

GROUP = 500
"""Rows in a group of the file, and in memory."""


def require() -> None:
    """Raises MachineError where pyarrow is missing."""
    require_pyarrow("export jsonl")


def write(rows: Iterable[Row], path: Path) -> int:
    """Writes the file; how many rows it has."""
    import pyarrow
    from pyarrow import parquet

    schema, rest, count = arrow_schema(FIELDS), iter(rows), 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := [[_cell(field.cell(row)) for field in FIELDS] for row in islice(rest, GROUP)]:
            columns = zip(*group, strict=True)
            arrays = [pyarrow.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
            count += len(group)
    return count


def _cell(cell: Any) -> Any:
    if isinstance(cell, str):
        return whole(cell)
    if isinstance(cell, list):
        return [{name: _cell(text) for name, text in message.items()} for message in cell]
    return cell
