"""Attempts whose every text is hostile: programs, answers, names, logs, reasons, models, runs, devices."""

from __future__ import annotations

from kernelproof.db.store import Store
from kernelproof.types import Build, BuildState, Check, CheckOutcome, Finding, Flag, Problem, Severity, Status
from tests.db import samples
from tests.hostile_texts import TEXTS

CHARTED = 3
"""Attempts with single times, which are drawn: a chart takes long."""


def fill(store: Store) -> None:
    """A finished attempt for each hostile text, numbered from 1 in their order."""
    for number, text in enumerate(TEXTS):
        _attempt(store, number, text)


def _attempt(store: Store, number: int, text: str) -> None:
    problem = samples.problem(number, source=f"# {text}\nclass Model: ...")
    problem = Problem.model_validate({**problem.model_dump(), "name": text, "summary": text})
    attempt = samples.begin(store, problem, samples.settings(f"model:{text}", name=text))
    store.record_provider_error(attempt, text)
    answer = samples.response(text).model_copy(update={"reasoning": text, "served_model": text})
    store.record_response(attempt, answer)
    store.record_extraction(attempt, samples.extraction(f'# {text}\nname = "{text}"\n{text}'))
    judged = samples.verification(problem, speedup=1.0 + number)
    assert judged.measurement is not None
    few = {} if number < CHARTED else {"candidate_samples_ms": (), "baseline_samples_ms": ()}
    judged = judged.model_copy(
        update={
            "measurement": judged.measurement.model_copy(update=few),
            "reason": text,
            "details": text,
            "flags": (Flag.SHAPE_SPECIALISED,),
            # Each device has its charts, so there are three.
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
