"""Cores that are kept for measurements on GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.verifier.engine.core_sharing import MEASURED_CORES, shares, shares_by_gpu

NOWHERE = Path("/nonexistent")


def topology(folder: Path, *pieces: str) -> Path:
    """The kernel's folder for cores that share silicon as these lists say: `0,4`, `2-3`."""
    for piece in pieces:
        first, _, last = piece.partition("-")
        named = range(int(first), int(last) + 1) if last else map(int, piece.split(","))
        for core in named:
            place = folder / f"cpu{core}" / "topology"
            place.mkdir(parents=True)
            (place / "thread_siblings_list").write_text(f"{piece}\n")
    return folder


@pytest.mark.parametrize(
    ("gpus", "cores", "kept"),
    [
        (1, 16, [(0, 1)]),
        (2, 16, [(0, 1), (2, 3)]),
        (4, 16, [(0, 1), (2, 3), (4, 5), (6, 7)]),
        (8, 16, [()] * 8),
        (1, 4, [(0, 1)]),
        (1, 3, [()]),
        (1, 1, [()]),
        (0, 16, []),
    ],
)
def test_each_gpu_has_two_where_half_are_left(gpus: int, cores: int, kept: list[tuple[int, ...]]) -> None:
    found = shares(gpus, range(cores), NOWHERE)
    assert [share.measured + share.referee for share in found] == kept
    assert all(len(share.measured) == 1 for share in found if share.measured)
    assert all(share.others == tuple(range(2 * gpus, cores)) for share in found if share.measured)


def test_threads_of_one_core_go_together(tmp_path: Path) -> None:
    where = topology(tmp_path, *(f"{core},{core + 8}" for core in range(8)))
    first, second = shares(2, range(16), where)
    assert (first.measured, first.referee) == ((0, 8), (1, 9))
    assert (second.measured, second.referee) == ((2, 10), (3, 11))
    assert first.others == (4, 5, 6, 7, 12, 13, 14, 15)


def test_a_thread_that_is_not_ours_is_not_counted(tmp_path: Path) -> None:
    where = topology(tmp_path, "0-1", "2-3", "4-5", "6-7")
    (only,) = shares(1, [0, 2, 4, 5, 6, 7], where)
    assert (only.measured, only.referee, only.others) == ((0,), (2,), (4, 5, 6, 7))


@given(st.integers(0, 9), st.sets(st.integers(0, 63), min_size=1))
def test_nothing_is_given_twice(gpus: int, cores: set[int]) -> None:
    found = shares(gpus, cores, NOWHERE)
    assert len(found) == gpus
    given_out = [core for share in found for core in share.measured + share.referee]
    assert len(given_out) == len(set(given_out))
    for share in found:
        assert not share.measured or len(share.measured + share.referee) >= MEASURED_CORES
        assert set(share.others) == (cores - set(given_out) if share.measured else set())
        assert not share.measured or 2 * len(share.others) >= len(cores)


@pytest.mark.parametrize("cores", [12, 16, 64])
def test_processes_with_other_gpus_of_one_host_come_to_the_same(cores: int) -> None:
    """Two runs side by side, each with a GPU of its own, were timed on the same cores."""
    host = ["GPU-a", "GPU-b", "GPU-c"]
    together = shares_by_gpu(host, host, range(cores), NOWHERE)
    for uuid in host:
        assert shares_by_gpu([uuid], host, range(cores), NOWHERE) == {uuid: together[uuid]}
    assert [together[uuid].measured for uuid in host] == [(0,), (2,), (4,)]


def test_hidden_gpus_do_not_take_what_the_visible_need() -> None:
    host = [f"GPU-{number}" for number in range(8)]
    assert shares_by_gpu(["GPU-3"], host, range(16), NOWHERE)["GPU-3"].measured == (0,)


def test_a_gpu_that_is_not_listed_has_its_share() -> None:
    assert shares_by_gpu(["GPU-x"], [], range(16), NOWHERE)["GPU-x"].measured == (0,)
