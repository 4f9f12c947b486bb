"""At `quick` on a GPU a baseline's process serves the next baseline too. Here sessions on a CPU are told that
they have a GPU; tests/gpu/test_used_baselines.py has whole verdicts on one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from kernelproof.problems import open_suite
from kernelproof.types import Problem, Rigor, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.session import Session, Tools, WarmState
from kernelproof.verifier.workers.client import Contestant
from kernelproof.verifier.workers.shared_memory import SharedWeights

Measured = Callable[..., tuple[int, ...]]

LEAVES_A_TRAP = """
if __name__ == "candidate":  # not in the referee

    def refuse(*_):
        raise RuntimeError("left by another problem")

    import builtins
    builtins.compile = refuse
"""


CHANGES_SETTINGS = """
if __name__ == "candidate":
    torch.backends.cudnn.benchmark = True
"""
TAKES_MEMORY = """
if __name__ == "candidate":
    kept = [torch.ones(20_000) for _ in range(10_000)]
"""
TAKES_LONG = """
if __name__ == "candidate":
    import time

    time.sleep(1.5)
"""


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Measured]:
    """Starts a problem's baseline and measures it, as far as this test is concerned. Its processes."""
    monkeypatch.setattr(Session, "on_gpu", True)
    warm = WarmState()
    nothing = cast("Any", None)

    def measure(
        problem: Problem, *, rigor: Rigor = Rigor.QUICK, more: bool = True, concluded: bool = True
    ) -> tuple[int, ...]:
        settings = VerifySettings(backend="cpp", size="small", rigor=rigor)
        request = VerifyRequest(problem=problem, source="", settings=settings, device="cpu")
        tools = Tools(nothing, lambda _: None, tmp_path, nothing, warm, more)
        session = Session(request, Ledger(request), tools)
        session.loaded = LoadedProblem(problem, "small")
        session.pristine = SharedWeights({}, {})
        session.start_baseline()
        if concluded:
            session.ready.result(60)
            session.is_concluded = True
        found = session.baseline.pids()
        session.close()
        warm.cleanup.wait()
        return found

    yield measure
    warm.close()


def problem(name: str, added: str = "") -> Problem:
    found = open_suite().find(name)
    return found.model_copy(update={"source": found.source + added})


def test_its_process_serves_the_next_one(measured: Measured) -> None:
    first = measured(problem("level1/1"))
    assert measured(problem("level2/3")) == first
    assert measured(problem("level1/3")) == first


@pytest.mark.parametrize(
    "changed", [{"rigor": Rigor.STANDARD}, {"more": False}, {"concluded": False}], ids=str
)
def test_a_fresh_one_comes_after(measured: Measured, changed: dict[str, Any]) -> None:
    first = measured(problem("level1/1"), **changed)
    assert measured(problem("level1/2")) != first


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Contestant]:
    """All that were started."""
    found: list[Contestant] = []
    start = Contestant.__init__

    def note(self: Contestant, *arguments: Any, **named: Any) -> None:
        found.append(self)
        start(self, *arguments, **named)

    monkeypatch.setattr(Contestant, "__init__", note)
    return found


def test_one_that_is_not_wanted_any_more_is_ended_while_it_loads(
    measured: Measured, started: list[Contestant]
) -> None:
    measured(problem("level1/1"))
    measured(problem("level1/2", TAKES_LONG), concluded=False)
    assert [each.alive for each in started] == [False]


def test_other_settings_of_torch_end_with_its_process(measured: Measured) -> None:
    first = measured(problem("level1/1", CHANGES_SETTINGS))
    assert measured(problem("level1/2")) != first


def test_its_memory_goes_back(measured: Measured) -> None:
    def nbytes(pids: tuple[int, ...]) -> int:
        return sum(psutil.Process(pid).memory_info().rss for pid in pids)

    used = measured(problem("level1/1"))
    before = nbytes(used)
    assert measured(problem("level1/2", TAKES_MEMORY)) == used  # 800 MB
    assert nbytes(used) < before + (200 << 20)


def test_only_quick_takes_a_used_one(measured: Measured) -> None:
    first = measured(problem("level1/1"))
    assert measured(problem("level1/2"), rigor=Rigor.STANDARD) != first
    assert measured(problem("level1/3")) == first


def test_what_a_problem_leaves_there_is_not_the_next_ones_fault(measured: Measured) -> None:
    first = measured(problem("level1/1", LEAVES_A_TRAP))
    second = measured(problem("level1/2"))
    assert second != first
    assert measured(problem("level1/3")) == second
