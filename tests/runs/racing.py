"""A search with a scripted model and machine: no process is started, and every verification is seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from kernelproof.db.scores.records import Kernel
from kernelproof.db.store import open_store
from kernelproof.db.views import StoredAttempt
from kernelproof.errors import MachineError
from kernelproof.providers import Provider, Question
from kernelproof.runs.batch import Outcome, RunPlan, Terms, run_batch
from kernelproof.runs.events import Event
from kernelproof.runs.limits import Limits
from kernelproof.types import Problem, Response, Rigor, RunSettings, Status, Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine
from tests.db import samples
from tests.prompting.material import roofline

SETTINGS = VerifySettings(backend="cpp", size="full", rigor=Rigor.STANDARD)
ROOFS = {"level1/1": 10.0, "level1/2": 100.0}
"""The speedup at the roofline, by problem."""


class Model(Provider):
    """Its answer to turn N is program N, or the one that `programs` has for this turn."""

    def __init__(self, programs: Mapping[int, int] | None = None) -> None:
        self._programs = programs or {}
        self.asked: list[int] = []
        self.problems: list[str] = []

    @property
    def name(self) -> str:
        return "scripted"

    async def ask(self, question: Question) -> Response:
        self.asked.append(question.turn)
        self.problems.append(question.problem_id)
        number = self._programs.get(question.turn, question.turn)
        source = f"from torch import nn\n\n\nclass ModelNew(nn.Module):  # program {number}\n"
        source += "    def forward(self, x):\n        return x\n"
        return Response(text=f"```python\n{source}```", raw={"turn": question.turn})


class Machine(Engine):
    """Program N is as fast as the scripts say: one for screenings, one for other verifications. None is
    wrong. `dies_at`: the number of the verification, from 1, at which the machine fails."""

    def __init__(
        self,
        cache: Path,
        screened: Sequence[float | None],
        true: Sequence[float | None],
        dies_at: int | None = None,
    ) -> None:
        super().__init__(cache)
        self._screened, self._true, self._dies_at = screened, true, dies_at
        self.verified: list[tuple[int, float | None]] = []
        """Program and bar."""

    def verify(
        self,
        source: str,
        problem: Problem,
        settings: VerifySettings,
        on_stage: object = None,
        stop: object = None,
        prebuilt: object = None,
    ) -> Verification:
        if self._dies_at == len(self.verified) + 1:
            raise MachineError("killed")
        number = int(source.split("program ")[1].split()[0])
        self.verified.append((number, settings.bar))
        speedup = (self._true if settings.bar is None else self._screened)[number - 1]
        if speedup is None:
            return samples.verification(problem, Status.WRONG_OUTPUT, verify=settings)
        made = samples.verification(problem, speedup=speedup, verify=settings)
        assert made.measurement is not None
        roof = roofline(fraction=speedup / ROOFS[problem.id])
        return made.model_copy(update={"measurement": made.measurement.model_copy(update={"roofline": roof})})


class Searching:
    """One store, and searches in it."""

    def __init__(self, folder: Path, programs: Mapping[int, int] | None = None, **settings: Any) -> None:
        self._folder, self.model, self.events = folder, Model(programs), list[Event]()
        self.problems = [samples.problem()]
        facts = {"turns": 6, "strategy": "refine", "race": True, "template": "basic-v3", **settings}
        self.settings = RunSettings(model="scripted", verify=SETTINGS, **facts)

    def run(
        self,
        screened: Sequence[float | None],
        true: Sequence[float | None],
        *,
        dies_at: int | None = None,
        limits: Limits | None = None,
        divides: bool = False,
        change: Callable[[Any], None] = lambda _: None,
    ) -> tuple[Outcome | None, list[tuple[int, float | None]]]:
        """How the batch ended, None where the machine failed, and what was verified."""
        machine = Machine(self._folder / "cache", screened, true, dies_at)
        plan = RunPlan(self.settings, self.model, self.problems, samples=1, questions=1)
        with open_store(self._folder / "attempts.sqlite") as store:
            change(store)
            work = partial(run_batch, [plan], store, machine, Terms(limits or Limits(), divides=divides))
            try:
                return anyio.run(partial(work, on_event=self.events.append)), machine.verified
            except MachineError:
                return None, machine.verified

    @property
    def attempts(self) -> list[StoredAttempt]:
        with open_store(self._folder / "attempts.sqlite", only_read=True) as store:
            return store.load_sample(1, samples.key(self.problems[0]))

    @property
    def ranked(self) -> Kernel | None:
        """What the leaderboard has."""
        with open_store(self._folder / "attempts.sqlite", only_read=True) as store:
            (problem,) = store.scores.leaderboard().problems
            return problem.best
