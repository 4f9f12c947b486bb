"""A judge's view of its GPU through NVML: foreign processes, and faults; `pynvml` is replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelproof.verifier.devices import gpu_watch
from kernelproof.verifier.devices.gpu_watch import PROGRAMS_XIDS, GpuWatch
from tests.devices.fake_gpus import STATE, UUIDS, FakeGpus
from tests.devices.nvml import pynvml

UUID = UUIDS[0]
NOBODY = 2**22 + 1
"""No process has this number: Linux gives none above 2**22."""
OUTLIVES = """
import subprocess
none = subprocess.DEVNULL
print(subprocess.Popen(["sleep", "1000"], stdin=none, stdout=none, stderr=none).pid)
"""


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    monkeypatch.setitem(sys.modules, "pynvml", pynvml)
    monkeypatch.setenv(STATE, str(tmp_path / "gpus.json"))
    return FakeGpus(tmp_path / "gpus.json", UUID)


@pytest.fixture
def watch(gpus: FakeGpus) -> Iterator[GpuWatch]:
    watch = GpuWatch(UUID)
    yield watch
    watch.close()


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process that does not descend from this one any more: its parent has ended."""
    made = subprocess.run(
        [sys.executable, "-c", OUTLIVES], capture_output=True, text=True, check=True, start_new_session=True
    )
    pid = int(made.stdout)
    yield pid
    os.kill(pid, 9)


@pytest.fixture
def child() -> Iterator[int]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process.pid
        process.kill()


@pytest.fixture(params=["host", "container"])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the driver counts processes as this one does."""
    ours = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - it is no path
    monkeypatch.setattr(gpu_watch, "INITIAL_NAMESPACE", ours if request.param == "host" else "another")
    return str(request.param)


def pids(watch: GpuWatch, *, alone: bool = False) -> list[int]:
    return [each.pid for each in watch.strangers(alone=alone)]


def test_processes_of_ours_are_no_strangers(where: str, gpus: FakeGpus, watch: GpuWatch, child: int) -> None:
    gpus.set(UUID, processes=[os.getpid(), child])
    assert pids(watch) == []


def test_a_stranger_beside_ours_is_seen_and_named(
    where: str, gpus: FakeGpus, watch: GpuWatch, child: int, stranger: int
) -> None:
    gpus.set(UUID, processes=[child, stranger, NOBODY])
    assert [str(each) for each in watch.strangers(alone=False)] == [f"process {stranger} (sleep)"]
    gpus.set(UUID, processes=[child])
    assert pids(watch) == []


def test_before_anything_of_ours_runs_every_process_is_a_stranger(
    where: str, gpus: FakeGpus, watch: GpuWatch, stranger: int
) -> None:
    gpus.set(UUID, processes=[stranger, NOBODY])
    assert pids(watch, alone=True) == ([stranger] if where == "host" else [stranger, NOBODY])


def test_numbers_of_the_host_say_nothing_in_a_container(
    monkeypatch: pytest.MonkeyPatch, gpus: FakeGpus, watch: GpuWatch, stranger: int
) -> None:
    monkeypatch.setattr(gpu_watch, "INITIAL_NAMESPACE", "another")
    gpus.set(UUID, processes=[stranger, NOBODY])
    assert pids(watch) == []
    monkeypatch.setattr(gpu_watch, "GPU_FILES", "/dev/null")  # which that process has open
    assert pids(watch) == [stranger]


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"xids": [79]}, "the driver reported Xid 79"),
        ({"xids": [*sorted(PROGRAMS_XIDS) * 3, 48]}, "the driver reported Xid 48"),
        ({"uncorrected": 5}, "its memory had 2 uncorrectable errors"),
        ({"broken_rows": 1}, "a broken row of its memory could not be replaced"),
        ({"lost": True}, "the driver lost it (error 15)"),
    ],
)
def test_a_fault_is_told(gpus: FakeGpus, watch: GpuWatch, facts: dict[str, Any], says: str) -> None:
    gpus.set(UUID, uncorrected=3)
    assert watch.fault() is None and watch.fault() is None
    gpus.set(UUID, **facts)
    assert watch.fault() == says


def test_errors_that_programs_cause_and_what_was_before_are_no_faults(
    gpus: FakeGpus, watch: GpuWatch
) -> None:
    gpus.set(UUID, xids=[79], uncorrected=3)
    assert watch.fault() is None
    gpus.set(UUID, xids=[79, *PROGRAMS_XIDS])
    assert watch.fault() is None


def test_a_gpu_that_is_gone_is_looked_for_anew_after_its_reset(gpus: FakeGpus, watch: GpuWatch) -> None:
    gpus.set(UUID, lost=True)
    assert watch.fault() == "the driver no longer finds it (error 15)"
    assert watch.strangers(alone=False) == ()
    gpus.set(UUID, lost=False)
    assert watch.fault() is None


def test_a_driver_that_tells_nothing_accuses_nobody(
    monkeypatch: pytest.MonkeyPatch, gpus: FakeGpus, watch: GpuWatch
) -> None:
    def unsupported(*_: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    for name in vars(pynvml).copy():
        if name.startswith(("nvmlDeviceGetC", "nvmlDeviceGetT", "nvmlDeviceGetR", "nvmlEvent")) and callable(
            getattr(pynvml, name)
        ):
            monkeypatch.setattr(pynvml, name, unsupported)
    gpus.set(UUID, xids=[79], processes=[os.getpid() + 1])
    assert watch.fault() is None and watch.strangers(alone=True) == ()
