"""The canary: it lets right results pass, and sees wrong ones, crashes and silence."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelproof.errors import DeviceUnfit
from kernelproof.verifier.canary import known_results
from kernelproof.verifier.devices import gpu_health, quarantine

CPU = torch.device("cpu")
MINE = sorted(os.sched_getaffinity(0))
UUID = "GPU-00000000-1111-2222-3333-444444444444"


class Broken(TorchDispatchMode):
    """A device that computes one element of one result of an operator wrongly."""

    def __init__(self, operator: str) -> None:
        super().__init__()
        self.operator = operator
        self.done = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if self.operator in str(func) and isinstance(result, torch.Tensor) and not self.done:
            self.done = True
            flat = result.view(-1)
            flat[flat.numel() // 2] += 1
        return result


@pytest.fixture
def reserve() -> Iterator[gpu_health.Reserve]:
    kept = gpu_health.Reserve()
    yield kept
    kept.close()


def program(source: str) -> tuple[str, ...]:
    return (sys.executable, "-c", source)


@pytest.mark.parametrize("probe", known_results.PROBES)
def test_every_probe_passes_on_a_working_device(probe: known_results.Probe) -> None:
    assert probe(CPU) is None


@pytest.mark.ci
@pytest.mark.parametrize(
    ("operator", "probe", "seen"),
    [
        ("aten.mul_.", "pattern", "checksum"),
        ("aten.bitwise_not_", "pattern", "did not hold"),
        ("aten.index_add_", "counts", "1 of 97 bins"),
    ],
)
def test_one_wrong_element_is_seen(operator: str, probe: str, seen: str) -> None:
    with Broken(operator):
        found = known_results.examine(CPU, known_results.PROBES[1:])
    assert found is not None and found.startswith(f"{probe}: ") and seen in found


def test_a_product_with_one_wrong_element_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The truth is a product on the CPU too, so only the device's own precision is broken here."""
    right = torch.Tensor.__matmul__

    def wrong(left: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        result = right(left, other)
        if left.dtype == torch.float16:
            result[3, 5] += 1
        return result

    monkeypatch.setattr(torch.Tensor, "__matmul__", wrong)
    found = known_results.examine(CPU)
    assert found == "product: 1 of 1048576 elements of a torch.float16 matrix product came out wrong"


def test_an_error_of_the_driver_is_what_was_seen() -> None:
    def faulty(_: torch.device) -> str | None:
        raise RuntimeError("CUDA error: an illegal memory access\nmore of it")

    assert (
        known_results.examine(CPU, [faulty]) == "faulty: RuntimeError: CUDA error: an illegal memory access"
    )


@pytest.mark.ci
def test_a_fresh_process_says_healthy() -> None:
    assert gpu_health.check("cpu") is None


@pytest.mark.ci
def test_one_in_reserve_answers_once(place: Path, reserve: gpu_health.Reserve) -> None:
    reserve.refill("cpu", MINE[:1])
    waiting = reserve._waiting
    assert waiting is not None and not reserve.content("cuda:0")
    reserve.refill("cpu", MINE[:1])
    assert reserve._waiting is waiting
    gpu_health.confirm("cpu", UUID, "a crash", reserve=reserve)
    assert _gone(waiting.pid) and not reserve.content("cpu")
    assert quarantine.find(UUID) is None


@pytest.mark.ci
def test_one_in_reserve_sings_before_it_is_needed(place: Path, reserve: gpu_health.Reserve) -> None:
    reserve.refill("cpu")
    reserve.prepare()  # it is not up yet: nothing happens, and nobody waits
    reserve.settle()
    assert reserve._waiting is not None and reserve._waiting.stdout is not None
    while not reserve._heard:
        reserve.prepare()
        time.sleep(0.05)
    reserve.settle()
    assert reserve._heard == [gpu_health.UP, gpu_health.HEALTHY]
    for _ in range(2):
        reserve.prepare()
        reserve.settle()
        assert reserve._heard == [gpu_health.UP, gpu_health.HEALTHY, gpu_health.HEALTHY]
    began = time.monotonic()
    gpu_health.confirm("cpu", UUID, "a crash", reserve=reserve)
    print(f"asked again it took {time.monotonic() - began:.2f} s")
    assert not reserve.content("cpu") and quarantine.find(UUID) is None


@pytest.mark.ci
def test_one_in_reserve_gets_on_where_nothing_settles(reserve: gpu_health.Reserve) -> None:
    reserve.refill("cpu")
    while reserve._heard != [gpu_health.UP, gpu_health.HEALTHY, gpu_health.HEALTHY]:
        assert reserve._waiting is not None
        reserve.prepare()
        time.sleep(0.01)


SAYS_UP = "import sys; print('up', flush=True); sys.stdin.readline(); "


@pytest.mark.few(1)
@pytest.mark.parametrize("source", ["print('counts: 3 bins')", "import time; time.sleep(1000)", "pass"])
def test_one_in_reserve_that_is_not_content_is_ended(
    monkeypatch: pytest.MonkeyPatch, reserve: gpu_health.Reserve, source: str
) -> None:
    monkeypatch.setattr(gpu_health, "PROGRAM", program(SAYS_UP + source))
    reserve.refill("cpu")
    while not reserve._heard:
        reserve.prepare()
    waiting = reserve._waiting
    assert waiting is not None
    reserve.settle(seconds=1.0)
    assert waiting.poll() is not None and not reserve.content("cpu")


@pytest.mark.ci
def test_where_the_one_in_reserve_fails_another_is_asked(
    monkeypatch: pytest.MonkeyPatch, place: Path, reserve: gpu_health.Reserve
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(gpu_health, "PROGRAM", program(SAYS_UP + "raise SystemExit('pattern: 3 words')"))
        reserve.refill("cpu")
    gpu_health.confirm("cpu", UUID, "a crash", reserve=reserve)  # by a new one, which is content
    assert quarantine.find(UUID) is None


@pytest.mark.ci
def test_one_in_reserve_that_has_ended_is_not_asked(place: Path, reserve: gpu_health.Reserve) -> None:
    reserve.refill("cpu")
    assert reserve._waiting is not None
    reserve._waiting.kill()
    reserve._waiting.wait()
    gpu_health.confirm("cpu", UUID, "a crash", reserve=reserve)
    assert quarantine.find(UUID) is None
    ended = reserve._waiting
    reserve.refill("cpu")
    assert reserve._waiting is not ended


@pytest.mark.ci
def test_one_in_reserve_ends_with_its_keeper() -> None:
    """Its standard input is at its end then, however the keeper ended."""
    waiting = gpu_health._started(gpu_health.PROGRAM, "cpu")
    assert waiting.stdin is not None
    waiting.stdin.close()
    assert waiting.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("print('pattern: 3 words'); raise SystemExit(1)", "pattern: 3 words (exit code 1)"),
        ("raise ValueError('no such device')", "ValueError: no such device (exit code 1)"),
        ("import os; os.abort()", "it said nothing (signal 6)"),
        ("pass", "it said nothing (exit code 0)"),
        ("print('healthy'); raise SystemExit(2)", "healthy (exit code 2)"),
    ],
)
def test_anything_but_healthy_is_a_failure(source: str, seen: str) -> None:
    assert gpu_health.check("cpu", program=program(source)) == seen


def test_a_hanging_canary_is_killed_with_all_it_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    source = f"""
import pathlib, subprocess, time
child = subprocess.Popen(["sleep", "1000"])
pathlib.Path({str(child)!r}).write_text(str(child.pid))
time.sleep(1000)
"""
    found = gpu_health.check("cpu", seconds=3, program=program(source))
    assert found == "no answer within 3 s"
    assert _gone(int(child.read_text()))


def _gone(pid: int, seconds: float = 30.0) -> bool:
    """Whether a process ends (a zombie that nobody has waited for has ended)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def test_a_gpu_that_fails_is_quarantined(place: Path) -> None:
    with pytest.raises(DeviceUnfit, match=f"{UUID} was quarantined: it failed the canary after a crash"):
        gpu_health.confirm("cuda:99", UUID, "a crash")  # there is no such device, wherever this runs
    record = quarantine.find(UUID)
    assert record is not None and record.pid == os.getpid()
    assert (
        record.reason.startswith("it failed the canary after a crash: product:") or "Error" in record.reason
    )


def test_of_a_cpu_nothing_is_asked(place: Path) -> None:
    gpu_health.confirm("no device at all", None, "a crash")
    assert not place.exists()


@pytest.mark.ci
def test_a_quarantine_that_cannot_be_written_is_said(place: Path) -> None:
    place.write_text("not a directory")
    with pytest.raises(DeviceUnfit, match="the quarantine could not be written down"):
        gpu_health.confirm("cuda:99", UUID, "a crash")


def test_a_record_is_found_until_it_is_lifted(place: Path) -> None:
    assert quarantine.find(UUID) is None
    assert quarantine.impose(UUID, "3 of 97 bins") is None
    assert quarantine.impose(UUID, "again") is None
    record = quarantine.find(UUID)
    assert record is not None and (record.uuid, record.reason) == (UUID, "again")
    assert [path.name for path in place.iterdir()] == [f"{UUID}.quarantine.json"]
    assert quarantine.find(UUID.replace("4", "5")) is None
    assert quarantine.lift(UUID) is None
    assert quarantine.find(UUID) is None
    assert quarantine.lift(UUID) is None


def of_another(path: Path) -> None:
    assert quarantine.impose("GPU-other", "it is broken") is None
    (path.parent / "GPU-other.quarantine.json").rename(path)


SPOILED: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("{ this is no JSON"),
    "empty": lambda path: path.touch(),
    "unknown fields": lambda path: path.write_text(
        f'{{"uuid": "{UUID}", "reason": "", "since": "", "pid": 1, "more": true}}'
    ),
    "of another": of_another,
    "huge": lambda path: path.write_bytes(b" " * (1 << 20)),
    "binary": lambda path: path.write_bytes(bytes(range(256))),
    "link": lambda path: path.symlink_to("/etc/hostname"),
    "pipe": os.mkfifo,
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_record_that_cannot_be_read_still_counts(place: Path, spoil: Callable[[Path], object]) -> None:
    place.mkdir()
    spoil(place / f"{UUID}.quarantine.json")
    record = quarantine.find(UUID)
    assert record is not None and record.uuid == UUID and str(place) in record.reason
    assert quarantine.lift(UUID) is None
    assert quarantine.find(UUID) is None


def test_what_a_stranger_wrote_moves_no_cursor(place: Path) -> None:
    assert quarantine.impose(UUID, "broken\x1b[2Jclear\x07\nnext line") is None
    record = quarantine.find(UUID)
    assert record is not None and record.reason == "broken [2Jclear  next line"
