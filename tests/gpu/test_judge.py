"""The cases of tests/devices/test_gpu_watch.py and tests/service/test_judges.py, whose driver is a fake, on a
real GPU."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelproof.db.store import Store
from kernelproof.service.gpu_lease import GpuLease
from kernelproof.verifier.devices import discovery, locks, quarantine
from kernelproof.verifier.devices.gpu_watch import GpuWatch
from tests.db.samples import new_store
from tests.gpu.test_guard import USE_THE_GPU
from tests.service.test_gpu_lease import entered

pytestmark = pytest.mark.gpu


@pytest.fixture
def watch() -> Iterator[GpuWatch]:
    watch = GpuWatch(discovery.require_gpu().uuid)
    yield watch
    watch.close()


@pytest.fixture
def store(tmp_path: Path, empty_database: Path) -> Iterator[Store]:
    with new_store(tmp_path, empty_database) as opened:
        yield opened


@contextmanager
def using_the_gpu() -> Iterator[None]:
    """A child of this process that computes on the GPU."""
    with subprocess.Popen([sys.executable, "-c", USE_THE_GPU], stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None and user.stdout.readline().strip() == "up"
        try:
            yield
        finally:
            user.kill()


def until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_sound_gpu_has_no_fault(watch: GpuWatch) -> None:
    assert [watch.fault() for _ in range(3)] == [None] * 3


def test_a_child_on_the_gpu_is_ours_and_a_stranger_before_our_work_begins(watch: GpuWatch) -> None:
    with using_the_gpu():
        print("the driver tells:", watch.strangers(alone=True))
        assert watch.strangers(alone=False) == ()
    until(lambda: watch.strangers(alone=True) == ())


def test_after_it_was_put_back_the_canary_passes_and_the_record_goes(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(locks.DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.setattr(discovery, "_set_aside", {})
    gpu = discovery.require_gpu()
    gpu_lease = GpuLease(store, gpu)
    assert quarantine.impose(gpu.uuid, "a test") is None
    assert entered(gpu_lease) == "it is set aside: a test"
    assert store.service.gpus.put_back(gpu.uuid)
    assert entered(gpu_lease) is None
    try:
        assert gpu_lease.look(begun=True) and gpu_lease.is_fit and quarantine.find(gpu.uuid) is None
        [known] = store.service.gpus.all()
        assert (known.state, known.unproven, known.name) == ("held", False, gpu.name)
    finally:
        gpu_lease.leave()
