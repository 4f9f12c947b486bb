"""A report on made-up attempts, once for all tests: two models, and one of hostile texts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store, open_store
from kernelproof.report.html.gathering import gather
from kernelproof.report.html.page import page
from kernelproof.types import Build, BuildState, Check, CheckOutcome, Finding, Flag, Problem, Severity, Status
from tests.db import samples
from tests.hostile_texts import TEXTS

SPEEDUPS = {1: 2.0, 2: 0.5, 3: 10.5, 10: 1.25}
"""Problem to the speedup of the better model."""


@pytest.fixture(scope="session")
def filled(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("reported") / "db" / "attempts.sqlite"
    path.parent.mkdir()
    shutil.copy(empty_database, path)
    with open_store(path, create=False) as store:
        for number, speedup in SPEEDUPS.items():
            samples.judge(store, samples.problem(number), samples.settings("vendor:good"), speedup=speedup)
            samples.judge(store, samples.problem(number), samples.settings("vendor:poor"), speedup=0.4)
        failed = samples.settings("vendor:poor")
        samples.judge(store, samples.problem(4), failed, Status.WRONG_OUTPUT)
        _repaired(store)
        yield store


def _repaired(store: Store) -> None:
    """A second turn, whose program has the first one as its parent."""
    problem, run = samples.problem(5), samples.settings("vendor:good")
    first, _ = samples.judge(store, problem, run, Status.WRONG_OUTPUT)
    second = store.begin_attempt(
        store.begin_run(run), samples.key(problem, turn=2), samples.prompt(), parent_id=first
    )
    store.record_response(second, samples.response())
    store.record_extraction(second, samples.extraction("class ModelNew: mended = True"))
    store.record_verification(second, samples.verification(problem, speedup=1.5))
    store.finish_attempt(second, Status.CORRECT)


@pytest.fixture(scope="session")
def good(filled: Store) -> str:
    """The page of it."""
    return page(gather(filled, Filters(), 20), "2026-01-31")


@pytest.fixture(scope="session")
def hostile(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page whose every text is hostile: programs, names, logs, reasons, models, devices."""
    path = tmp_path_factory.mktemp("hostile") / "attempts.sqlite"
    shutil.copy(empty_database, path)
    with open_store(path, create=False) as store:
        for number, text in enumerate(TEXTS):
            _attempt(store, number, text)
        return page(gather(store, Filters(), len(TEXTS)), "2026-01-31")


def _attempt(store: Store, number: int, text: str) -> None:
    problem = samples.problem(number, source=f"# {text}\nclass Model: ...")
    problem = Problem.model_validate({**problem.model_dump(), "name": text, "summary": text})
    attempt = samples.begin(store, problem, samples.settings(f"model:{text}"))
    store.record_response(attempt, samples.response())
    store.record_extraction(attempt, samples.extraction(f'# {text}\nname = "{text}"\n{text}'))
    judged = samples.verification(problem, speedup=1.0 + number)
    assert judged.measurement is not None
    few = {} if number < 3 else {"candidate_samples_ms": (), "baseline_samples_ms": ()}  # a chart takes long
    judged = judged.model_copy(
        update={
            "measurement": judged.measurement.model_copy(update=few),
            "reason": text,
            "flags": (Flag.SHAPE_SPECIALISED,),
            # Each device has its charts: three are enough.
            "environment": samples.environment(f"CPU {text if number < 2 else TEXTS[2]}"),
            "builds": (Build(key="k", state=BuildState.OK, name=text, log=text, commands=(text,)),),
            "checks": (
                Check(name=text, outcome=CheckOutcome.PASS, asked=text, seen=text, figures={text: text}),
            ),
            "findings": (Finding(rule=text, severity=Severity.WARNING, message=text, evidence=text),),
        }
    )
    store.record_verification(attempt, judged)
    store.finish_attempt(attempt, Status.CORRECT)
