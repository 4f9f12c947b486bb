"""Which GPU is used: the first that is visible and not quarantined; what happens when there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelproof import doctor
from kernelproof.backends import backend, names
from kernelproof.errors import DeviceUnfit, MachineError
from kernelproof.jobs.judge import Job, Judge
from kernelproof.problems import open_suite
from kernelproof.service.worker import backends_here
from kernelproof.types import Status
from kernelproof.verifier.devices import discovery, quarantine
from kernelproof.verifier.devices.discovery import visible_gpus
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.referee_process import RefereeProcess
from tests.engine.host import GPUS, SETTINGS, SOURCE, verdict


@pytest.mark.parametrize(
    ("visible", "left"),
    [
        (None, "012"),
        ("", ""),
        ("-1", ""),
        ("1", "1"),
        (" 2 , 0 ", "20"),
        ("1,7,0", "1"),
        ("1,-1,0", "1"),
        ("GPU-c1,GPU-a", "20"),
        ("GPU-c1,1", "21"),
        ("GPU-", ""),
        ("GPU-unknown,0", ""),
        ("0,GPU-a1", ""),
        ("MIG-a1", ""),
    ],
)
def test_visible_devices_are_read_as_cuda_reads_them(visible: str | None, left: str) -> None:
    assert "".join(str(gpu.index) for gpu in visible_gpus(GPUS, visible)) == left


def test_the_first_healthy_gpu_is_taken(host: Path) -> None:
    assert discovery.require_gpu() == GPUS[0]
    assert quarantine.impose("GPU-a1", "it computes wrongly") is None
    assert discovery.require_gpu() == GPUS[1]
    assert discovery.environment_for(discovery.chosen_gpu()) == {"CUDA_VISIBLE_DEVICES": "GPU-b1"}
    assert discovery.device_for("cuda") == "cuda:0"
    assert [gpu for gpu, _ in discovery.quarantined()] == [GPUS[0]]
    assert quarantine.lift("GPU-a1") is None
    assert discovery.require_gpu() == GPUS[0]


def test_none_left_names_the_gpus_and_why(host: Path) -> None:
    for gpu in GPUS:
        assert quarantine.impose(gpu.uuid, f"no {gpu.index} is broken") is None
    assert discovery.default_backend() == "cuda"
    with pytest.raises(MachineError) as caught:
        discovery.device_for("cuda")
    assert caught.value.exit_code == 3
    for gpu in GPUS:
        assert f"GPU {gpu.index} (NVIDIA H200, {gpu.uuid}) is quarantined: no {gpu.index}" in str(
            caught.value
        )
    assert "kernelproof doctor" in str(caught.value)
    assert discovery.device_for("cpp") == "cpu"
    assert discovery.environment_for(discovery.chosen_gpu()) == {"CUDA_VISIBLE_DEVICES": ""}


def test_a_gpu_is_remembered_where_nothing_can_be_written(host: Path) -> None:
    host.write_text("not a directory")
    discovery.set_aside("GPU-a1", "it failed")
    assert discovery.require_gpu() == GPUS[1]
    assert [record.reason for _, record in discovery.quarantined()] == ["it failed"]


def test_a_record_that_can_be_lifted_is_not_remembered_beside_it(host: Path) -> None:
    assert quarantine.impose("GPU-a1", "it failed") is None
    discovery.set_aside("GPU-a1", "it failed")
    assert quarantine.lift("GPU-a1") is None
    assert discovery.require_gpu() == GPUS[0]


def test_a_machine_without_gpus_has_none_to_hide(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "gpus", lambda: ())
    assert discovery.device_for("cuda") is None and discovery.default_backend() == "cpp"
    assert discovery.environment_for(discovery.chosen_gpu()) == {}


def test_a_worker_leaves_out_backends_whose_package_is_missing(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine with a GPU may lack a package that one backend compiles with; the others work there."""
    monkeypatch.setattr("kernelproof.backends.interface.find_spec", lambda _: None)
    with pytest.raises(MachineError, match="pip install"):
        discovery.device_for("tilelang")
    assert set(backends_here()) == {name for name in names() if backend(name).first_call is None}
    assert {"cuda", "cpp"} <= set(backends_here())


def test_unfit_travels_over_the_wire(referees: Callable[..., None], cache: Path) -> None:
    referees("GPU-a1")
    referee = RefereeProcess(cache, GPUS[0])
    try:
        with pytest.raises(DeviceUnfit, match="GPU-a1 was quarantined: it said so"):
            referee.environment("cuda:0")
    finally:
        referee.close()


@pytest.mark.ci
@pytest.mark.parametrize(
    "act",
    [
        "quarantine.impose(gpu, 'it said so')",
        pytest.param("pass", marks=pytest.mark.slow),
        pytest.param("os._exit(1)", marks=pytest.mark.slow),
    ],
)
def test_a_candidate_is_tried_again_on_the_next_gpu(
    referees: Callable[..., None], cache: Path, act: str
) -> None:
    """Whether the referee wrote the quarantine down, could not, or was lost: then the engine looks."""
    referees("GPU-a1", act=act)
    with Engine(cache) as engine:
        first = verdict(engine)
        assert (first.status, first.reason) == (Status.CRASH, "seen on GPU-b1 as cuda:0")
        assert verdict(engine).reason == "seen on GPU-b1 as cuda:0"
        assert quarantine.impose("GPU-b1", "another process found out") is None
        assert verdict(engine).reason == "seen on GPU-c1 as cuda:0"


@pytest.mark.ci
def test_one_candidate_does_not_cost_every_gpu(referees: Callable[..., None], cache: Path) -> None:
    """Nor do the retries after faults of the machine."""
    referees("GPU-a1", "GPU-b1")
    with Engine(cache) as engine:
        found = Judge(engine).judge(Job.of_text(SOURCE, open_suite().find("level1/1"), SETTINGS)).verification
    assert found is not None and found.status is Status.INFRASTRUCTURE_ERROR
    assert "2 GPUs failed their canary" in found.reason and "GPU-b1" in found.reason
    assert discovery.require_gpu() == GPUS[2]


@pytest.mark.ci
def test_with_no_gpu_left_the_run_ends(
    referees: Callable[..., None], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    referees("GPU-a1")
    monkeypatch.setattr(discovery, "gpus", lambda: GPUS[:1])
    with Engine(cache) as engine:
        with pytest.raises(MachineError, match="no healthy GPU is left") as caught:
            verdict(engine)
        assert not isinstance(caught.value, DeviceUnfit)


def test_doctor_lifts_what_passes_and_keeps_what_does_not(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for gpu in GPUS[:2]:
        assert quarantine.impose(gpu.uuid, "it failed") is None

    def check(device: str, *, environment: dict[str, str]) -> str | None:
        assert device == "cuda:0"
        return "3 of 97 bins" if environment["CUDA_VISIBLE_DEVICES"] == "GPU-a1" else None

    monkeypatch.setattr("kernelproof.verifier.devices.gpu_health.check", check)
    stays, lifted = doctor.lift_quarantine(lambda _: None)
    assert not stays.ok and "GPU-a1) stays: 3 of 97 bins" in stays.seen and "--gpu-reset -i 0" in stays.remedy
    assert lifted.ok and "GPU-b1) passed" in lifted.seen
    assert [gpu.index for gpu, _ in discovery.quarantined()] == [0]


def test_doctor_has_nothing_to_lift(host: Path) -> None:
    (only,) = doctor.lift_quarantine(lambda _: None)
    assert only.ok and only.seen == "no GPU is quarantined"


@pytest.mark.parametrize(
    ("cores", "ok", "seen"),
    [
        (16, True, "6 for 3 GPUs, the rest for builds"),
        (8, False, "8 cores for 3 GPUs: builds and measurements"),
    ],
)
def test_doctor_says_which_cores_are_kept(
    host: Path, monkeypatch: pytest.MonkeyPatch, cores: int, ok: bool, seen: str
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    found = {finding.name: finding for finding in doctor._guards()}
    assert found["cores"].ok == ok and found["cores"].seen.startswith(seen)
    for gpu in GPUS:
        assert quarantine.impose(gpu.uuid, "it failed") is None
    assert "cores" not in {finding.name for finding in doctor._guards()}
