"""A cell's records as bytes: column by column, each as narrow as its values allow.

A million records are read for each question, and few of their columns. So a cell begins with a directory,
and a column is unpacked only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelproof.db.scores.layout import ROW, Ints, Records

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
    """The kind, the base and the bytes of a column."""
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
        """A column of all records, in their order."""
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
        """The records, unpacked whole."""
        found = np.empty(len(self), ROW)
        for name in ROW.names or ():
            found[name] = self.column(name)
        return found

    def record(self, row: int) -> dict[str, Any]:
        """One of them, by column."""
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
