"""Packed records are unpacked bit by bit, by column, by row and whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kernelproof.db.scores.packing import ROW, PackedRecords, Records, Rows, pack

NAMES = ROW.names or ()


def columns() -> st.SearchStrategy[Records]:
    """Records whose columns are constant, small, large, fractions, sometimes missing."""

    def column(name: str, rows: int) -> st.SearchStrategy[Records]:
        kind = ROW[name]
        whole = st.integers(-(2**31), 2**31 - 1) | st.integers(0, 300)
        if kind.kind == "i":
            values = whole | (st.integers(-(2**63), 2**63 - 1) if kind.itemsize == 8 else st.nothing())
        else:
            values = whole.map(float) | st.floats() | st.just(-0.0) | st.just(float("nan"))
        fills = values.flatmap(lambda value: st.just(np.full(rows, value, kind)))
        return arrays.arrays(kind, rows, elements=values) | fills

    def records(rows: int) -> st.SearchStrategy[Records]:
        return st.tuples(*(column(name, rows) for name in NAMES)).map(put)

    def put(found: tuple[Records, ...]) -> Records:
        made = np.zeros(len(found[0]), ROW)
        for name, values in zip(NAMES, found, strict=True):
            made[name] = values
        made["attempt"] = np.abs(made["attempt"] // 2)
        return made

    return st.integers(1, 20).flatmap(records)


def same(a: Records, b: Records) -> bool:
    """Equal in value; a NaN is a NaN, and 0 is not -0."""
    return (
        a.dtype == b.dtype
        and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        and (a.dtype.kind != "f" or bool((np.signbit(a) == np.signbit(b))[~np.isnan(a)].all()))
    )


@pytest.mark.parametrize("count", [5, pytest.param(40, marks=pytest.mark.ci)])
def test_unpacked_is_what_was_packed(count: int) -> None:
    settings(max_examples=count)(given(st.lists(columns(), max_size=3))(unpacked))()


def unpacked(cells: list[Records]) -> None:
    found = PackedRecords([pack(cell) for cell in cells])
    whole = np.concatenate([np.zeros(0, ROW), *cells])
    assert len(found) == len(whole) and pack(found.all()) == pack(whole)
    for name in NAMES:
        assert same(found.column(name), np.ascontiguousarray(whole[name])), name
    for row in range(len(whole)):
        record = found.record(row)
        assert all(same(np.array([record[name]]), whole[name][row : row + 1]) for name in NAMES)


def test_what_is_alike_takes_little_room() -> None:
    cell = np.zeros(1024, ROW)
    cell["attempt"] = 10**12 + np.arange(1024)
    cell["speedup"] = np.where(np.arange(1024) % 4 == 0, 1.5, np.nan)
    assert len(pack(cell)) < len(cell.tobytes()) / 20


def test_some_rows_are_read_from_the_columns_of_all() -> None:
    cell = np.zeros(6, ROW)
    cell["run"], cell["sample"], cell["attempt"] = 1, [0, 0, 1, 2, 2, 2], np.arange(1, 7)
    rows = Rows(PackedRecords([pack(cell[:4]), pack(cell[4:])]))
    some = rows.only(np.array([5, 3, 0])).only(np.array([True, False, True]))
    assert some["attempt"].tolist() == [6, 1] and some.record(0)["sample"] == 2
    assert rows.sample.tolist() == [0, 0, 1, 2, 2, 2] and not rows.one_each
    assert rows.only(np.array([0, 2, 3])).one_each
