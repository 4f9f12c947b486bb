"""What is lost to our side: tried again at most twice, kept as that, taken up by the next command."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from kernelproof.db.store import open_store
from kernelproof.errors import MachineError
from kernelproof.hashing import sha256_text
from kernelproof.problems import open_suite
from kernelproof.runs.candidates import ManyDone, candidate_from_text, verify_all
from kernelproof.types import Problem, Status, Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine
from tests.cli import material

SETTINGS = VerifySettings(backend="cpp")


class Machine(Engine):
    """An engine without processes, whose verdicts are set: None is a machine that lacks something."""

    def __init__(self, cache: Path, *verdicts: Status | None) -> None:
        super().__init__(cache)
        self.verdicts = list(verdicts)

    def verify(
        self,
        source: str,
        problem: Problem,
        settings: VerifySettings,
        on_stage: object = None,
        stop: object = None,
        prebuilt: object = None,
    ) -> Verification:
        status = self.verdicts.pop(0)
        if status is None:
            raise MachineError("no compiler")
        return Verification(
            status=status,
            reason="set",
            problem_id=problem.id,
            problem_sha256=problem.sha256,
            candidate_sha256=sha256_text(source),
            settings=settings,
            verifier="0",
            created="2026-01-01T00:00:00.000+00:00",
        )


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return open_suite(material.problems(tmp_path / "problems")).find("relu")


def verified(folder: Path, problem: Problem, *verdicts: Status | None) -> tuple[ManyDone, list[object]]:
    """What became of one candidate, and the verdicts that nobody asked for."""
    machine = Machine(folder / "cache", *verdicts)
    given = [candidate_from_text("right.py", material.right(), problem)]
    with open_store(folder / "attempts.sqlite") as store:

        async def main() -> ManyDone:
            return await verify_all(given, SETTINGS, machine, store=store)

        return anyio.run(main), list(machine.verdicts)


LOST = Status.INFRASTRUCTURE_ERROR


def test_lost_twice_it_is_verified_a_third_time(tmp_path: Path, problem: Problem) -> None:
    outcome, rest = verified(tmp_path, problem, LOST, LOST, Status.CORRECT, LOST)
    (done,) = outcome.done
    assert (done.verdict.status, rest) == (Status.CORRECT, [LOST])


def test_lost_for_good_it_is_taken_up_by_the_next_command(tmp_path: Path, problem: Problem) -> None:
    ends = []
    for verdicts in ((LOST, LOST, LOST), (Status.WRONG_OUTPUT,), ()):
        outcome, rest = verified(tmp_path, problem, *verdicts)
        (done,) = outcome.done
        assert rest == [] and outcome.missing == 0
        ends.append((done.verdict.status, done.verdict.attempt_id, done.verdict.reused))
    assert ends == [(LOST, 1, False), (Status.WRONG_OUTPUT, 2, False), (Status.WRONG_OUTPUT, 2, True)]


def test_what_the_machine_lacks_is_raised_and_nothing_kept(tmp_path: Path, problem: Problem) -> None:
    with pytest.raises(MachineError, match="no compiler"):
        verified(tmp_path, problem, None)
    with open_store(tmp_path / "attempts.sqlite") as store:
        assert store.latest_attempt_id() is None
