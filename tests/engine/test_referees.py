"""Several GPUs: a referee each, the work shared, and what is left when one is put aside."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from kernelproof.errors import MachineError
from kernelproof.types import CoreShares
from kernelproof.verifier.devices import discovery, quarantine
from kernelproof.verifier.engine.build_stage import Prebuilt, prebuild
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.referee_process import RefereeLost, RefereeProcess
from kernelproof.verifier.engine.referees import Referees
from tests.engine.host import GPUS, verdict

MEET = """
    Path({place!r}, gpu).touch()
    until = time.monotonic() + 60
    while time.monotonic() < until and len(list(Path({place!r}).iterdir())) < {count}:
        time.sleep(0.02)
"""


def judged_on(engine: Engine, count: int) -> list[str]:
    """The GPUs on which so many candidates were judged that came at the same time."""
    with ThreadPoolExecutor(count) as pool:
        verdicts = list(pool.map(lambda _: verdict(engine), range(count)))
    return sorted(found.reason.split()[2] for found in verdicts)


@pytest.mark.ci
def test_each_gpu_has_a_candidate_at_the_same_time(
    referees: Callable[..., None], cache: Path, tmp_path: Path
) -> None:
    """Each referee answers only when all three are at work, or after a minute."""
    place = tmp_path / "met"
    place.mkdir()
    referees(before=MEET.format(place=str(place), count=3).strip())
    with Engine(cache) as engine:
        assert judged_on(engine, 3) == ["GPU-a1", "GPU-b1", "GPU-c1"]


@pytest.mark.ci
def test_one_candidate_at_a_time_starts_one_referee(referees: Callable[..., None], cache: Path) -> None:
    referees()
    before = referees_running()  # those that a fixture of the session holds
    with Engine(cache) as engine:
        assert {verdict(engine).reason for _ in range(2)} == {"seen on GPU-a1 as cuda:0"}
        assert len(referees_running() - before) == 1
    assert referees_running() - before == set()


@pytest.mark.ci
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is no choice")
def test_a_thread_that_builds_keeps_off_the_cores_of_measurements(
    referees: Callable[..., None], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, seen = sorted(os.sched_getaffinity(0)), []
    kept = CoreShares(measured=(mine[0],), others=tuple(mine[1:]))
    monkeypatch.setattr("kernelproof.verifier.engine.referees.shares_by_gpu", lambda *_: {"GPU-a1": kept})

    def noted(*given: Any, **more: Any) -> Prebuilt:
        seen.append(os.sched_getaffinity(0))
        return prebuild(*given, **more)

    monkeypatch.setattr("kernelproof.verifier.engine.build_stage.prebuild", noted)
    referees()
    with Engine(cache) as engine:
        verdict(engine)
    assert seen == [set(mine[1:])]
    assert os.sched_getaffinity(0) == set(mine)


@pytest.mark.ci
def test_a_gpu_that_fails_leaves_its_work_to_the_others(referees: Callable[..., None], cache: Path) -> None:
    referees("GPU-b1")
    with Engine(cache) as engine:
        found = judged_on(engine, 6)
    assert len(found) == 6 and set(found) <= {"GPU-a1", "GPU-c1"}


def test_a_run_uses_gpus_of_one_kind(
    referees: Callable[..., None], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed = (GPUS[0], replace(GPUS[1], name="NVIDIA A100"), GPUS[2])
    monkeypatch.setattr(discovery, "gpus", lambda: mixed)
    assert discovery.fleet() == (GPUS[0], GPUS[2])
    assert quarantine.impose("GPU-a1", "it is broken") is None
    assert discovery.fleet() == (mixed[1],)
    assert quarantine.lift("GPU-a1") is None


@contextmanager
def held(referees: Referees) -> Iterator[threading.Thread]:
    """Another thread that waits for a referee while this one has the only one; its error is its name."""

    def wait() -> None:
        try:
            with referees.reserved("cuda:0"):
                pass
        except (RefereeLost, MachineError) as error:
            thread.name = type(error).__name__

    thread = threading.Thread(target=wait, name="took one")
    with referees.reserved("cuda:0"):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        yield thread


@pytest.fixture
def only_one(
    referees: Callable[..., None], monkeypatch: pytest.MonkeyPatch, cache: Path
) -> Iterator[Referees]:
    referees()
    monkeypatch.setattr(discovery, "gpus", lambda: GPUS[:1])
    made = Referees(cache)
    yield made
    made.close()


@pytest.mark.ci
@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        (lambda referees: None, "took one"),
        (lambda referees: referees.close(), "RefereeLost"),
        (lambda referees: quarantine.impose("GPU-a1", "it failed"), "MachineError"),
    ],
    ids=["afterwards", "at the end", "when no GPU is left"],
)
def test_who_waits_gets_it_or_is_told_why_not(
    only_one: Referees, act: Callable[[Referees], None], outcome: str
) -> None:
    with held(only_one) as waiting:
        act(only_one)
        if outcome == "RefereeLost":
            waiting.join(60)
    waiting.join(60)
    assert waiting.name == outcome


@pytest.mark.ci
def test_a_referee_gets_ready_once_before_it_is_given_out(only_one: Referees) -> None:
    told, readied, order = threading.Event(), [], []

    def ready(referee: RefereeProcess) -> None:
        readied.append(referee)
        assert told.wait(60)
        order.append("ready")

    def take() -> None:
        with only_one.reserved("cuda:0"):
            order.append("taken")

    with only_one.expected("cuda:0", ready), only_one.expected("cuda:0", ready):
        thread = threading.Thread(target=take)
        thread.start()
        thread.join(0.3)
        told.set()
        thread.join(60)
    with only_one.expected("cuda:0", ready):
        take()
    assert order == ["ready", "taken", "taken"] and len(readied) == 1


@pytest.mark.ci
def test_what_is_measured_once_is_asked_for_while_the_build_runs(
    referees: Callable[..., None], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where measurements have cores of their own: compilers use the others."""
    note = f"open({str(tmp_path / 'asked')!r}, 'a').write(message['op'] + ' ')"
    kept = CoreShares(measured=(0,), others=(min(os.sched_getaffinity(0)),))
    for shares, asked in ((kept, "prepare verify "), (CoreShares(), "verify ")):
        monkeypatch.setattr(
            "kernelproof.verifier.engine.referees.shares_by_gpu", lambda *_, s=shares: {"GPU-a1": s}
        )
        referees(before=note)
        with Engine(cache) as engine:
            assert verdict(engine).reason == "seen on GPU-a1 as cuda:0"
        assert (tmp_path / "asked").read_text() == asked
        (tmp_path / "asked").unlink()


def referees_running() -> set[int]:
    """This process's referees."""
    return {p.pid for p in psutil.Process().children() if p.status() != psutil.STATUS_ZOMBIE}
