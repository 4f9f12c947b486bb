"""The GPU that a judge holds: what keeps it from the GPU, what takes the GPU away; `pynvml` is replaced."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelproof.db.store import Store
from kernelproof.service import held_gpu as held_gpus
from kernelproof.service.held_gpu import HeldGpu
from kernelproof.verifier.devices import discovery, gpu_health, locks, quarantine
from kernelproof.verifier.devices.discovery import Gpu
from tests.db.samples import new_store
from tests.devices.fake_gpus import STATE, UUIDS, FakeGpus
from tests.devices.nvml import pynvml

UUID = UUIDS[0]
GPU = Gpu(uuid=UUID, name="NVIDIA H200", index=0)
HEALTHY = "print('up\\nhealthy')"
ILL = "print('counts: 3 bins'); raise SystemExit(1)"


@pytest.fixture
def store(tmp_path: Path, empty_database: Path) -> Iterator[Store]:
    with new_store(tmp_path, empty_database) as opened:
        yield opened


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    monkeypatch.setitem(sys.modules, "pynvml", pynvml)
    monkeypatch.setenv(STATE, str(tmp_path / "gpus.json"))
    monkeypatch.setenv(locks.DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.setattr(held_gpus, "LOOK_S", 0.0)
    monkeypatch.setattr(discovery, "_set_aside", {})
    return FakeGpus(tmp_path / "gpus.json", UUID)


@pytest.fixture
def held_gpu(store: Store, gpus: FakeGpus) -> Iterator[HeldGpu]:
    held_gpu = HeldGpu(store, GPU)
    yield held_gpu
    held_gpu.leave()


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has the canary say something else."""

    def says(source: str) -> None:
        program = (sys.executable, "-c", source)
        monkeypatch.setitem(gpu_health.check.__kwdefaults__, "program", program)

    return says


def entered(held_gpu: HeldGpu) -> str | None:
    """Why the GPU cannot be had; None where it was. The first reason ends the wait."""
    stop, said = threading.Event(), list[str]()

    def say(sentence: str) -> None:
        said.append(sentence.removeprefix(f"waiting for {held_gpu.gpu}: "))
        stop.set()

    return None if held_gpu.enter(stop, say) else said[0]


def test_it_is_taken_and_left(store: Store, held_gpu: HeldGpu) -> None:
    assert entered(held_gpu) is None and held_gpu.look(begun=True) and held_gpu.waits is None
    other = HeldGpu(store, GPU)
    assert entered(other) is not None
    held_gpu.leave()
    assert entered(other) is None and not held_gpu.look(begun=True)
    other.leave()


def test_what_the_host_knows_against_a_gpu_sets_it_aside(store: Store, held_gpu: HeldGpu) -> None:
    assert quarantine.impose(UUID, "it failed the canary after a crash") is None
    assert entered(held_gpu) == "it is set aside: it failed the canary after a crash"
    [gpu] = store.service.gpus.all()
    assert gpu.reason == "it failed the canary after a crash"


def test_after_it_was_put_back_the_canary_decides(
    store: Store, held_gpu: HeldGpu, canary: Callable[[str], None]
) -> None:
    assert quarantine.impose(UUID, "a crash") is None
    assert entered(held_gpu) == "it is set aside: a crash"
    canary(ILL)
    assert store.service.gpus.put_back(UUID)
    said = entered(held_gpu)
    assert said is not None and "failed the canary after it was put back: counts: 3 bins" in said
    canary(HEALTHY)
    assert store.service.gpus.put_back(UUID)
    assert entered(held_gpu) is None and held_gpu.is_fit
    [gpu] = store.service.gpus.all()
    assert (gpu.state, gpu.unproven, gpu.reason) == ("held", False, None)
    assert quarantine.find(UUID) is None


def test_a_gpu_that_is_broken_when_a_judge_comes_is_set_aside(gpus: FakeGpus, held_gpu: HeldGpu) -> None:
    gpus.set(UUID, broken_rows=1)
    assert entered(held_gpu) == "it is set aside: a broken row of its memory could not be replaced"


@pytest.mark.parametrize("how", ["fault", "canary", "operator"])
def test_a_gpu_that_turns_bad_is_taken_from_its_judge(
    store: Store, gpus: FakeGpus, held_gpu: HeldGpu, how: str
) -> None:
    assert entered(held_gpu) is None and held_gpu.look(begun=True)
    if how == "fault":
        gpus.set(UUID, xids=[48])
    elif how == "canary":
        discovery.set_aside(UUID, "it failed the canary")
    else:
        store.service.gpus.set_aside(UUID, "an operator set it aside")
        held_gpu._renewed = 0.0  # the time to renew the lease has come
    assert not held_gpu.look(begun=True) and held_gpu.lease is None
    assert held_gpu.bad == (how != "operator")
    assert store.service.gpus.all()[0].state == "set aside"


def test_a_process_that_is_seen_once_is_no_stranger_but_a_disturbance(
    gpus: FakeGpus, held_gpu: HeldGpu
) -> None:
    """It may be one of ours that has lost its parent and is about to end."""
    assert entered(held_gpu) is None
    began = time.monotonic()
    assert held_gpu.look(begun=True) and not held_gpu.disturbed_since(began)
    gpus.set(UUID, processes=[1])
    assert held_gpu.look(begun=True) and held_gpu.waits is None and held_gpu.disturbed_since(began)
    assert held_gpu.look(begun=True) and held_gpu.waits is not None and "process 1" in held_gpu.waits
    gpus.set(UUID, processes=[])
    assert held_gpu.look(begun=True) and held_gpu.waits is None
    assert not held_gpu.disturbed_since(time.monotonic())
