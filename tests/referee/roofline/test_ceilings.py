"""Ceilings: measured once for an environment, kept, and measured again when what was kept is of no use."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelproof.types import Environment, GpuInfo
from kernelproof.types.measurement import Ceilings
from kernelproof.verifier.referee import ceilings

CPU = torch.device("cpu")
HOST = Environment(
    kernelproof="1",
    python="3.12.1",
    torch="2.13",
    platform="Linux",
    cpu="a processor",
    cores=2,
    memory_bytes=1 << 30,
    host_sha256="ab",
)
GPU = GpuInfo(index=0, name="G", uuid="GPU-1", capability="9.0", memory_bytes=1, sm_count=1, l2_bytes=1)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "CPU_BYTES", 1 << 20)
    monkeypatch.setattr(ceilings, "CPU_SIDE", 64)


def known(
    cache: Path, aa: Callable[[], float] | None = None, environment: Environment = HOST
) -> tuple[Ceilings, dict[str, Any]]:
    """The ceilings, and what the file holds afterwards."""
    found = ceilings.known(CPU, cache, environment, aa)
    return found, json.loads(only_file(cache).read_text())


def only_file(cache: Path) -> Path:
    (path,) = (cache / "ceilings").iterdir()
    return path


def never() -> float:
    raise AssertionError("measured again")


def marked(cache: Path) -> None:
    """Changes what is kept, so that a later answer shows where it came from."""
    data = json.loads(only_file(cache).read_text())
    data["ceilings"]["bytes_per_s"] = 123.0
    only_file(cache).write_text(json.dumps(data))


def test_measuring_gives_figures_that_can_be() -> None:
    found = ceilings.measure(CPU)
    assert 1e6 < found.bytes_per_s < 1e14
    assert 1e5 < found.operations_per_s < 1e16
    assert 0 <= found.cache_bytes < 1 << 34


def test_a_second_process_reads_what_the_first_measured(tmp_path: Path) -> None:
    first, data = known(tmp_path, lambda: 0.02)
    assert first.aa_spread == 0.02 and data["ceilings"] == first.model_dump(mode="json")
    marked(tmp_path)
    again, _ = known(tmp_path, never)
    assert again == first.model_copy(update={"bytes_per_s": 123.0})


def test_without_a_spread_none_is_kept(tmp_path: Path) -> None:
    first, data = known(tmp_path)
    assert first.aa_spread == 0.0 and data["aa_measured"] is None
    second, data = known(tmp_path, lambda: 0.5)
    assert second == first.model_copy(update={"aa_spread": 0.5}) and data["aa_measured"] is not None
    assert known(tmp_path)[0] == second


def changed(cache: Path, age: timedelta = timedelta(0), *, tries: bool = True) -> None:
    """What is kept becomes so old; without its number of tries where that is said."""
    data = json.loads(only_file(cache).read_text())
    data["aa_measured"] = (datetime.now(UTC) - age).isoformat()
    if not tries:
        del data["aa_tries"]
    only_file(cache).write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("spread", "age", "tries", "kept", "meanwhile"),
    [
        (0.02, timedelta(hours=23), True, True, 0.02),
        (0.02, timedelta(hours=25), True, False, 0.0),
        (0.02, timedelta(hours=-1), True, False, 0.0),
        (0.02, timedelta(hours=1000), True, False, 0.0),
        (0.12, timedelta(0), True, False, 0.12),
        (0.12, timedelta(0), False, False, 0.12),
    ],
    ids=["of today", "of yesterday", "of tomorrow", "old", "large", "large, from before tries were counted"],
)
def test_a_spread_that_is_small_and_of_today_is_kept(
    tmp_path: Path, spread: float, age: timedelta, tries: bool, kept: bool, meanwhile: float
) -> None:
    first, _ = known(tmp_path, lambda: spread)
    changed(tmp_path, age, tries=tries)
    marked(tmp_path)
    assert known(tmp_path)[0].aa_spread == meanwhile
    if not kept:
        second, _ = known(tmp_path, lambda: 0.03)
        assert second == first.model_copy(update={"aa_spread": 0.03, "bytes_per_s": 123.0})
    assert known(tmp_path, never)[0].aa_spread == (spread if kept else 0.03)


def test_the_smallest_of_three_large_spreads_counts_for_ten_minutes(tmp_path: Path) -> None:
    days = [known(tmp_path, lambda spread=spread: spread) for spread in (0.12, 0.05, 0.2)]
    assert [found.aa_spread for found, _ in days] == [0.12, 0.05, 0.05]
    assert len({data["aa_measured"] for _, data in days[:2]}) == 1  # the day begins with the first
    found, data = known(tmp_path, never)
    assert found.aa_spread == 0.05 and data["aa_tries"] == 3
    changed(tmp_path, timedelta(minutes=11))
    assert known(tmp_path)[0].aa_spread == 0.0
    assert known(tmp_path, lambda: 0.02)[0].aa_spread == 0.02  # the machine is quiet now


def test_figures_outlive_a_spread_that_cannot_be_measured(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="measured again"):
        known(tmp_path, never)
    marked(tmp_path)
    assert known(tmp_path)[0].bytes_per_s == 123.0


SOUND = {"bytes_per_s": 1, "operations_per_s": 1, "cache_bytes": 1, "aa_spread": 0, "measured": "x"}
CORRUPT = (
    *("", "{", "[]", "null", "{}", "\udcff"),
    *(
        json.dumps({"ceilings": ceilings, "aa_measured": measured} | more)
        for ceilings, measured, more in (
            ({}, None, {}),
            (SOUND | {"bytes_per_s": 0}, None, {}),
            (SOUND | {"operations_per_s": float("nan")}, None, {}),
            (SOUND, "yesterday", {}),
            (SOUND, 7, {}),
            (SOUND, "2026-11-25T06:00:00+00:00", {"aa_tries": "many"}),
        )
    ),
)


@pytest.mark.parametrize("text", CORRUPT)
def test_a_corrupt_file_is_measured_again(tmp_path: Path, text: str) -> None:
    known(tmp_path)
    only_file(tmp_path).write_bytes(text.encode("utf-8", "surrogateescape"))
    found, data = known(tmp_path)
    assert found.bytes_per_s > 1e3
    assert data["ceilings"] == found.model_dump(mode="json")


def test_a_cache_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "ceilings").write_text("a file where a directory should be")
    assert ceilings.known(CPU, tmp_path, HOST, lambda: 0.25).aa_spread == 0.25


def test_only_what_decides_about_times_tells_environments_apart(tmp_path: Path) -> None:
    def files(**changes: object) -> int:
        ceilings.known(CPU, tmp_path, HOST.model_copy(update={"gpu": GPU, **changes}), None)
        return len(list((tmp_path / "ceilings").iterdir()))

    assert files() == 1
    assert files(kernelproof="2", python="3.11.0", gpu=GPU.model_copy(update={"index": 3})) == 1
    assert files(torch="2.12") == 2
    assert files(driver="580") == 3
    assert files(gpu=GPU.model_copy(update={"uuid": "GPU-2"})) == 4


@pytest.mark.gpu
def test_a_gpu_is_measured_and_left_as_it_was() -> None:
    before = torch.backends.cuda.matmul.allow_tf32
    found = ceilings.measure(torch.device("cuda"))
    assert torch.backends.cuda.matmul.allow_tf32 == before
    assert 1e11 < found.bytes_per_s < 2e13  # no GPU that torch runs on is slower, none yet is faster
    assert 1e12 < found.operations_per_s < 1e17
    assert found.cache_bytes == torch.cuda.get_device_properties(0).L2_cache_size


def test_another_measurement_raises_what_is_kept_and_never_lowers_it(tmp_path: Path) -> None:
    def small_spread() -> float:
        return 0.01

    first, _ = known(tmp_path, small_spread)
    marked(tmp_path)  # as on a GPU that was hot
    again = ceilings.measured_again(CPU, tmp_path, HOST)
    assert again.bytes_per_s > 123.0
    assert again.operations_per_s >= first.operations_per_s
    kept, data = known(tmp_path)
    assert (kept.bytes_per_s, kept.aa_spread) == (again.bytes_per_s, 0.01)
    data["ceilings"]["bytes_per_s"] = 1e18
    only_file(tmp_path).write_text(json.dumps(data))
    assert ceilings.measured_again(CPU, tmp_path, HOST).bytes_per_s == 1e18
