"""A tuning keeps compilers busy: several trials are on their way, on a GPU more. The original goes alone."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernelproof.db.store import open_store
from kernelproof.problems import open_suite
from kernelproof.runs.tuning.search import Grid, TuningTask, tune
from kernelproof.runs.tuning.template import read_template
from kernelproof.types import Pace, Problem, Status, Verification, VerifySettings
from tests.prompting.material import measurement, verification

SOURCE = """# tune: BLOCK = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
BLOCK = 1


class ModelNew:
    pass
"""


class Crowd:
    """An engine whose verifications end when so many are under way, or nobody comes for a while."""

    def __init__(self, most: int) -> None:
        self._changed, self._most = threading.Condition(), most
        self.inside: list[int] = []
        self._now = 0

    def verify(self, source: str, problem: Problem, settings: VerifySettings, *_: Any) -> Verification:
        with self._changed:
            self._now += 1
            self.inside.append(self._now)
            self._changed.notify_all()
            if "BLOCK = 1\n" not in source:
                self._changed.wait_for(lambda: max(self.inside) >= self._most, timeout=5)
            self._now -= 1
        return verification(
            Status.CORRECT, problem_id=problem.id, settings=settings, measurement=measurement(1.0, Pace.SAME)
        )

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("backend", "most"), [("cpp", 3), ("cuda", 8)])
def test_so_many_trials_are_under_way(tmp_path: Path, backend: str, most: int) -> None:
    template, settings = read_template(SOURCE), VerifySettings(backend=backend)
    task = TuningTask(template, open_suite().find("level1/1"), settings, settings)
    engine, proposer = Crowd(most), Grid(template.original, list(template.combinations()))
    with open_store(tmp_path / "attempts.sqlite") as store:
        work: Any = partial(tune, task, proposer, engine, store, trials=12)  # type: ignore[arg-type]
        done = anyio.run(work)
    assert len(done.trials) == 12 and done.trials[0].values == template.original
    assert engine.inside[:2] == [1, 1] and max(engine.inside) == most
