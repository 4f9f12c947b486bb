"""The rows that scores are computed from: `Rows` of columns, and cells that hold them as bytes.

A million rows are read for each question, but few of their columns. So a cell begins with a directory, and
each column, as narrow as its values allow, is unpacked only when it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Records = NDArray[Any]
"""Records of the type ROW, by run, problem, sample, turn and verification."""
Ints = NDArray[Any]
Floats = NDArray[Any]
Truths = NDArray[Any]

ROW = np.dtype(
    [
        ("attempt", "<i8"),
        ("verification", "<i8"),  # 0: none
        ("run", "<i4"),
        ("problem", "<i4"),
        ("sample", "<i4"),
        ("turn", "<i4"),
        ("facts", "<i4"),  # the row of `score_facts`
        ("answers", "<i4"),  # answers that were asked and paid for
        ("unknown_tokens", "<i4"),  # of these, those without token counts
        ("unknown_cost", "<i4"),
        ("created", "<f8"),  # Unix time
        ("tokens", "<f8"),
        ("cost", "<f8"),  # US dollars
        ("speedup", "<f8"),  # from here on NaN where nothing was measured
        ("low", "<f8"),
        ("high", "<f8"),
        ("candidate_ms", "<f8"),
        ("baseline_ms", "<f8"),
        ("compile_speedup", "<f8"),
        ("compile_low", "<f8"),
        ("compile_high", "<f8"),
        ("fraction", "<f8"),  # of the roofline
    ]
)
"""One verification of an attempt, or an attempt without any. Other columns need a migration that empties
`score_cells` and lists all samples in `score_changes`."""

CHUNK = 1024
"""Samples of a run's problem that are kept together."""


class Source(Protocol):
    """Records that hand out their columns."""

    def __len__(self) -> int: ...

    def column(self, name: str) -> NDArray[Any]:
        """A column of all records, in their order."""

    def record(self, row: int) -> dict[str, Any]:
        """One of them, by column."""


class Rows:
    """Some of the records, in some order. Columns are read when they are asked for."""

    def __init__(self, source: Source, at: Ints | None = None, above: Rows | None = None) -> None:
        """`at`: the places of these rows; None for all records in their order. `above`: the rows that hold
        all columns."""
        self._source, self._at, self._above = source, at, above
        self._columns: dict[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self._source) if self._at is None else len(self._at)

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in self._columns:
            if self._at is None or self._above is None:
                self._columns[column] = self._source.column(column)
            else:
                self._columns[column] = self._above[column][self._at]
        return self._columns[column]

    @cached_property
    def sample(self) -> Ints:
        """A number for each row that grows by one from sample to sample; rows are by run, problem and
        sample."""
        return steps(*(self[name] for name in ("run", "problem", "sample")))

    @property
    def one_each(self) -> bool:
        return len(self) == 0 or int(self.sample[-1]) + 1 == len(self)

    def record(self, row: int) -> dict[str, Any]:
        return self._source.record(row if self._at is None else int(self._at[row]))

    def only(self, chosen: Truths | Ints) -> Rows:
        """Those that are true, or the numbered ones."""
        if chosen.dtype == bool:
            if chosen.all():
                return self
            chosen = np.flatnonzero(chosen)
        all_rows = self._above or self
        return Rows(self._source, chosen if self._at is None else self._at[chosen], all_rows)


def steps(*columns: NDArray[Any]) -> Ints:
    """A number for each row that grows by one wherever one of the columns differs from the row before."""
    if len(columns[0]) == 0:
        return np.zeros(0, np.int64)
    changed = np.zeros(len(columns[0]), bool)
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return np.cumsum(changed)


def starts(numbers: NDArray[Any]) -> Ints:
    """Where each run of equal numbers begins."""
    if len(numbers) == 0:
        return np.zeros(0, np.int64)
    found: Ints = np.concatenate(([0], np.flatnonzero(numbers[1:] != numbers[:-1]) + 1))
    return found


def distinct(numbers: Ints) -> Ints:
    """The numbers that occur, in their order. Fast where they are nearly in order already."""
    if not (numbers[1:] >= numbers[:-1]).all():
        numbers = np.sort(numbers, kind="stable")
    return numbers[starts(numbers)]


def dense(*columns: tuple[Ints, int]) -> tuple[Ints, list[tuple[int, ...]]]:
    """Numbers without gaps for the combinations of some columns that occur, and the combinations.

    Each column comes with the number of its values.
    """
    code = np.zeros(len(columns[0][0]), np.int64)
    for column, count in columns:
        code = code * max(count, 1) + column
    possible = math.prod(max(count, 1) for _, count in columns)
    if possible <= 10_000_000:  # counting is faster than sorting
        present = np.flatnonzero(np.bincount(code, minlength=1))
        numbers = np.zeros(possible, np.int64)
        numbers[present] = np.arange(len(present))
        number = numbers[code]
    else:
        present, number = np.unique(code, return_inverse=True)
    combinations = []
    for each in present.tolist():
        parts = []
        for _, count in reversed(columns):
            each, part = divmod(each, max(count, 1))
            parts.append(part)
        combinations.append(tuple(reversed(parts)))
    return number.astype(np.int64), combinations


MAGIC = b"kpcell1\xff"
_ENTRY = np.dtype([("kind", "u1"), ("base", "<i8"), ("offset", "<u4"), ("size", "<u4")])
_HEAD = np.dtype([("magic", "S8"), ("rows", "<u4"), *((name, _ENTRY) for name in ROW.names or ())])
_CONSTANT, _FLOATS, _SPARSE = 0, 16, 17
"""Kinds of columns: one value, whose bits are `base`; floats as they are; a bit for each row that has a
number, and these numbers. The other kinds are whole numbers above `base`, of so many bytes."""
_NARROW: dict[int, np.dtype[Any]] = {
    1: np.dtype("u1"),
    2: np.dtype("<u2"),
    4: np.dtype("<u4"),
    8: np.dtype("<i8"),
}
_WHOLE = 2.0**53


def pack(records: Records) -> bytes:
    """The bytes of a cell. Equal records give equal bytes."""
    head, parts, offset = np.zeros((), _HEAD), [], _HEAD.itemsize
    head["magic"], head["rows"] = MAGIC, len(records)
    for name in ROW.names or ():
        kind, base, part = _packed(np.ascontiguousarray(records[name]))
        head[name] = (kind, base, offset, len(part))
        parts.append(part)
        offset += len(part)
    return b"".join((head.tobytes(), *parts))


def _packed(column: NDArray[Any]) -> tuple[int, int, bytes]:
    bits = column.view(np.int64) if column.itemsize == 8 else column.astype(np.int64)
    if len(column) == 0 or (bits == bits[0]).all():
        return _CONSTANT, int(bits[0]) if len(column) else 0, b""
    if column.dtype.kind == "f":
        known = np.isfinite(column)
        with np.errstate(invalid="ignore"):
            whole = known.all() and (np.abs(column) < _WHOLE).all() and (column == np.floor(column)).all()
        if not whole or np.signbit(column[column == 0]).any():
            if not np.isnan(column).any():
                return _FLOATS, 0, column.tobytes()
            there = ~np.isnan(column)
            return _SPARSE, 0, np.packbits(there).tobytes() + column[there].tobytes()
        bits = column.astype(np.int64)
    base = int(bits.min())
    wide = int(bits.max()) - base
    width = next((width for width in (1, 2, 4) if wide < 1 << 8 * width), 8)
    if width == 8:
        return 8, 0, bits.tobytes()
    return width, base, (bits - base).astype(_NARROW[width]).tobytes()


class PackedRecords:
    """The records of some cells, one cell after the other. Columns are unpacked when they are asked for."""

    def __init__(self, cells: Sequence[bytes]) -> None:
        self._cells = cells
        heads = b"".join([cell[: _HEAD.itemsize] for cell in cells])
        self._heads = np.frombuffer(heads, _HEAD)
        self._counts = self._heads["rows"].astype(np.int64)
        self._ends = np.cumsum(self._counts)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def column(self, name: str) -> NDArray[Any]:
        kind = ROW[name]
        entries = self._heads[name]
        if (entries["kind"] == _CONSTANT).all():
            return np.repeat(_constants(entries["base"], kind), self._counts)
        found = np.empty(len(self), kind)
        begin = 0
        for cell, row, end in zip(self._cells, entries.tolist(), self._ends.tolist(), strict=True):
            _unpack(cell, row, found[begin:end])
            begin = end
        return found

    def all(self) -> Records:
        found = np.empty(len(self), ROW)
        for name in ROW.names or ():
            found[name] = self.column(name)
        return found

    def record(self, row: int) -> dict[str, Any]:
        cell = int(np.searchsorted(self._ends, row, "right"))
        place = row - int(self._ends[cell] - self._counts[cell])
        count = int(self._counts[cell])
        return {
            name: ROW[name].type(
                _figure(self._cells[cell], self._heads[name][cell].item(), name, place, count)
            )
            for name in ROW.names or ()
        }


def _constants(bases: Ints, kind: np.dtype[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(bases).view(np.float64) if kind.kind == "f" else bases.astype(kind)


def _unpack(cell: bytes, entry: tuple[int, int, int, int], into: NDArray[Any]) -> None:
    """Writes a column of a cell."""
    kind, base, offset, size = entry
    if kind == _CONSTANT:
        into[:] = np.int64(base).view(np.float64) if into.dtype.kind == "f" else base
    elif kind == _FLOATS:
        into[:] = np.frombuffer(cell, "<f8", len(into), offset)
    elif kind == _SPARSE:
        bits = (len(into) + 7) // 8
        there = np.unpackbits(np.frombuffer(cell, np.uint8, bits, offset), count=len(into)).view(bool)
        into[:] = np.nan
        into[there] = np.frombuffer(cell, "<f8", (size - bits) // 8, offset + bits)
    else:
        into[:] = np.frombuffer(cell, _NARROW[kind], len(into), offset)
        into += base


def _figure(cell: bytes, entry: tuple[int, int, int, int], name: str, place: int, count: int) -> Any:
    """One figure of a column of a cell of `count` rows."""
    kind, base, offset, _ = entry
    if kind == _CONSTANT:
        return np.int64(base).view(np.float64) if ROW[name].kind == "f" else base
    if kind == _FLOATS:
        return np.frombuffer(cell, "<f8", 1, offset + 8 * place)[0]
    if kind == _SPARSE:
        bits = (count + 7) // 8
        there = np.unpackbits(np.frombuffer(cell, np.uint8, bits, offset), count=count)
        before = int(there[:place].sum())
        return np.frombuffer(cell, "<f8", 1, offset + bits + 8 * before)[0] if there[place] else np.nan
    return int(np.frombuffer(cell, _NARROW[kind], 1, offset + kind * place)[0]) + base
