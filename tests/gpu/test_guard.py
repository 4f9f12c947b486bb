"""The guards on a real GPU: its canary passes, a quarantine is respected, newcomers are seen."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from kernelproof import doctor
from kernelproof.errors import DeviceUnfit, MachineError
from kernelproof.problems import open_suite
from kernelproof.types import Status, Verification, VerifySettings
from kernelproof.verifier.canary import known_results
from kernelproof.verifier.devices import discovery, gpu_health, locks, quarantine
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.referee.environment import describe_environment
from kernelproof.verifier.referee.timing.disturbance import Watch, nvml_reader

pytestmark = pytest.mark.gpu

FORWARD = """
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        {body}
"""
RIGHT = FORWARD.format(body="return torch.relu(x)")
CRASHING = FORWARD.format(body="import os; os.abort()")
ASSERTING = FORWARD.format(body="return x.take(torch.tensor([1 << 40], device=x.device)) + torch.relu(x)")
USE_THE_GPU = """
import torch
x = torch.ones(1 << 20, device="cuda:0")
torch.cuda.synchronize()
print("up", flush=True)
while True:
    x.mul_(1.0)
    torch.cuda.synchronize()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Locks and quarantines of this test alone."""
    monkeypatch.setenv(locks.DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.setattr(discovery, "_set_aside", {})
    return tmp_path / "locks"


def judge(engine: Engine, source: str, stages: list[str] | None = None) -> Verification:
    settings = VerifySettings(backend="cuda", own_kernel=False, measure=False)
    heard = stages if stages is not None else []
    return engine.verify(source, open_suite().find("level1/1"), settings, heard.append)


@contextmanager
def another_program() -> Iterator[int]:
    """A process that computes on the GPU without pause."""
    argv = [sys.executable, "-c", USE_THE_GPU]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        try:
            yield process.pid
        finally:
            process.kill()


def test_the_canary_finds_a_working_gpu_healthy() -> None:
    began = time.monotonic()
    assert gpu_health.check("cuda:0") is None
    print(f"the canary took {time.monotonic() - began:.2f} s")


@pytest.mark.parametrize("probe", known_results.PROBES)
def test_every_probe_passes_while_others_hold_most_of_the_memory(probe: known_results.Probe) -> None:
    device = torch.device("cuda", 0)
    torch.cuda.empty_cache()
    held = torch.empty(torch.cuda.mem_get_info(device)[0] - (768 << 20), dtype=torch.uint8, device=device)
    try:
        assert probe(device) is None
    finally:
        del held
        torch.cuda.empty_cache()


def test_a_gpu_that_is_not_there_fails(place: Path) -> None:
    with pytest.raises(DeviceUnfit):
        gpu_health.confirm("cuda:99", "GPU-not-there", "a crash")
    assert quarantine.find("GPU-not-there") is not None


def test_nvml_and_torch_mean_the_same_gpu() -> None:
    gpu = describe_environment(torch.device("cuda", 0)).gpu
    assert gpu is not None
    assert discovery.gpus()[0].uuid == gpu.uuid
    assert discovery.gpus()[0].name == gpu.name


@pytest.mark.parametrize("source", [CRASHING, ASSERTING], ids=["crash", "device-side assertion"])
def test_a_faulty_candidate_does_not_cost_the_gpu(place: Path, cache: Path, source: str) -> None:
    with Engine(cache) as engine:
        faulty = judge(engine, source)
        assert faulty.status in (Status.CRASH, Status.RUNTIME_ERROR), faulty.reason
        assert discovery.quarantined() == []
        assert judge(engine, RIGHT).status is Status.CORRECT


def test_a_quarantined_gpu_is_not_used_until_it_is_lifted(place: Path, cache: Path) -> None:
    first, *others = discovery.gpus()
    assert quarantine.impose(first.uuid, "a test says so") is None
    with Engine(cache) as engine:
        if others:
            verdict = judge(engine, RIGHT)
            assert verdict.status is Status.CORRECT, verdict.reason
            assert verdict.environment is not None and verdict.environment.gpu is not None
            assert verdict.environment.gpu.uuid == others[0].uuid
        else:
            with pytest.raises(MachineError, match=f"{first.uuid}.*a test says so"):
                judge(engine, RIGHT)
        (lifted,) = doctor.lift_quarantine(lambda _: None)
        assert lifted.ok, lifted.seen
        verdict = judge(engine, RIGHT)
        assert verdict.status is Status.CORRECT, verdict.reason
    assert discovery.require_gpu() == first


def test_two_runs_take_turns_on_one_gpu(place: Path, cache: Path) -> None:
    stages: tuple[list[str], list[str]] = ([], [])
    verdicts: list[Verification] = []

    def run(heard: list[str]) -> None:
        with Engine(cache) as engine:
            for _ in range(3):
                verdicts.append(judge(engine, RIGHT, heard))

    threads = [threading.Thread(target=run, args=(heard,)) for heard in stages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [verdict.status for verdict in verdicts] == [Status.CORRECT] * 6
    uuid = discovery.require_gpu().uuid
    assert any(stage.startswith(f"waiting for {uuid}: process ") for heard in stages for stage in heard)


def test_a_watch_is_quiet_on_a_quiet_gpu_and_sees_a_newcomer() -> None:
    device = torch.device("cuda", 0)
    x = torch.ones(1 << 20, device=device)
    watch = Watch(device, tuple)
    began = time.perf_counter()
    watch.before()
    before = time.perf_counter()
    for _ in range(1000):
        x.mul_(1.0)
    torch.cuda.synchronize()
    after = time.perf_counter()
    assert watch.after() is None and watch.gpu_trouble() is None
    print(f"before: {(before - began) * 1e3:.2f} ms, after: {(time.perf_counter() - after) * 1e3:.2f} ms")
    print(nvml_reader(device)(), watch.notes)
    watch.before()
    with another_program():
        if len(nvml_reader(device)().users or ()) < 2:
            pytest.skip("NVML lists no processes here")
        assert (watch.gpu_trouble() or "").startswith("another process came to use the GPU")


def test_the_driver_answers_what_a_watch_asks() -> None:
    reading = nvml_reader(torch.device("cuda", 0))()
    assert reading.sm_mhz is not None and reading.reasons is not None and reading.users is not None


def test_doctor_names_the_quarantined_gpu(place: Path) -> None:
    gpu = discovery.gpus()[0]
    assert quarantine.impose(gpu.uuid, "a test says so") is None
    environment = os.environ | {"OPENAI_BASE_URL": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-c", "from kernelproof.cli.app import main; main()", "doctor", "--no-noise"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert gpu.uuid in done.stdout and "a test says so" in done.stdout
    assert "--lift-quarantine" in done.stdout and "--gpu-reset" in done.stdout
