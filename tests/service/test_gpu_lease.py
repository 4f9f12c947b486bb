"""The GPU that a judge holds: what keeps it from the GPU, what takes the GPU away; `pynvml` is replaced."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelproof.db.store import Store
from kernelproof.service import gpu_lease as gpu_leases
from kernelproof.service.gpu_lease import GpuLease
from kernelproof.verifier.devices import discovery, gpu_health, locks, quarantine
from kernelproof.verifier.devices.discovery import Gpu
from tests.devices.fake_gpus import STATE, UUIDS, FakeGpus
from tests.devices.nvml import pynvml

UUID = UUIDS[0]
GPU = Gpu(uuid=UUID, name="NVIDIA H200", index=0)
HEALTHY = "print('up\\nhealthy')"
ILL = "print('counts: 3 bins'); raise SystemExit(1)"


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    monkeypatch.setitem(sys.modules, "pynvml", pynvml)
    monkeypatch.setenv(STATE, str(tmp_path / "gpus.json"))
    monkeypatch.setenv(locks.DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.setattr(gpu_leases, "LOOK_S", 0.0)
    monkeypatch.setattr(discovery, "_set_aside", {})
    return FakeGpus(tmp_path / "gpus.json", UUID)


@pytest.fixture
def gpu_lease(store: Store, gpus: FakeGpus) -> Iterator[GpuLease]:
    gpu_lease = GpuLease(store, GPU)
    yield gpu_lease
    gpu_lease.leave()


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has the canary say something else."""

    def says(source: str) -> None:
        program = (sys.executable, "-c", source)
        monkeypatch.setitem(gpu_health.check.__kwdefaults__, "program", program)

    return says


def entered(gpu_lease: GpuLease) -> str | None:
    """Why the GPU cannot be had; None where it was. The first reason ends the wait."""
    stop, said = threading.Event(), list[str]()

    def say(sentence: str) -> None:
        said.append(sentence.removeprefix(f"waiting for {gpu_lease.gpu}: "))
        stop.set()

    return None if gpu_lease.enter(stop, say) else said[0]


def test_it_is_taken_and_left(store: Store, gpu_lease: GpuLease) -> None:
    assert entered(gpu_lease) is None and gpu_lease.look(begun=True) and gpu_lease.waits is None
    other = GpuLease(store, GPU)
    assert entered(other) is not None
    gpu_lease.leave()
    assert entered(other) is None and not gpu_lease.look(begun=True)
    other.leave()


def test_what_the_host_knows_against_a_gpu_sets_it_aside(store: Store, gpu_lease: GpuLease) -> None:
    assert quarantine.impose(UUID, "it failed the canary after a crash") is None
    assert entered(gpu_lease) == "it is set aside: it failed the canary after a crash"
    [gpu] = store.service.gpus.all()
    assert gpu.reason == "it failed the canary after a crash"


def test_after_it_was_put_back_the_canary_decides(
    store: Store, gpu_lease: GpuLease, canary: Callable[[str], None]
) -> None:
    assert quarantine.impose(UUID, "a crash") is None
    assert entered(gpu_lease) == "it is set aside: a crash"
    canary(ILL)
    assert store.service.gpus.put_back(UUID)
    said = entered(gpu_lease)
    assert said is not None and "failed the canary after it was put back: counts: 3 bins" in said
    canary(HEALTHY)
    assert store.service.gpus.put_back(UUID)
    assert entered(gpu_lease) is None and gpu_lease.is_fit
    [gpu] = store.service.gpus.all()
    assert (gpu.state, gpu.unproven, gpu.reason) == ("held", False, None)
    assert quarantine.find(UUID) is None


def test_a_gpu_that_is_broken_when_a_judge_comes_is_set_aside(gpus: FakeGpus, gpu_lease: GpuLease) -> None:
    gpus.set(UUID, broken_rows=1)
    assert entered(gpu_lease) == "it is set aside: a broken row of its memory could not be replaced"


@pytest.mark.parametrize("how", ["fault", "canary", "operator"])
def test_a_gpu_that_turns_bad_is_taken_from_its_judge(
    store: Store, gpus: FakeGpus, gpu_lease: GpuLease, how: str
) -> None:
    assert entered(gpu_lease) is None and gpu_lease.look(begun=True)
    if how == "fault":
        gpus.set(UUID, xids=[48])
    elif how == "canary":
        discovery.set_aside(UUID, "it failed the canary")
    else:
        store.service.gpus.set_aside(UUID, "an operator set it aside")
        gpu_lease._renewed = 0.0  # the time to renew the lease has come
    assert not gpu_lease.look(begun=True) and gpu_lease.held is None
    assert gpu_lease.bad == (how != "operator")
    assert store.service.gpus.all()[0].state == "set aside"


def test_a_process_that_is_seen_once_is_no_stranger_but_a_disturbance(
    gpus: FakeGpus, gpu_lease: GpuLease
) -> None:
    """It may be one of ours that has lost its parent and is about to end."""
    assert entered(gpu_lease) is None
    began = time.monotonic()
    assert gpu_lease.look(begun=True) and not gpu_lease.disturbed_since(began)
    gpus.set(UUID, processes=[1])
    assert gpu_lease.look(begun=True) and gpu_lease.waits is None and gpu_lease.disturbed_since(began)
    assert gpu_lease.look(begun=True) and gpu_lease.waits is not None and "process 1" in gpu_lease.waits
    gpus.set(UUID, processes=[])
    assert gpu_lease.look(begun=True) and gpu_lease.waits is None
    assert not gpu_lease.disturbed_since(time.monotonic())
