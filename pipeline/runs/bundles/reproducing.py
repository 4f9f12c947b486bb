"""A bundle's claims, checked on this machine. Nothing is stored."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kernelproof.backends import BACKENDS, names
from kernelproof.errors import UsageError
from kernelproof.jobs import Job, Judge
from kernelproof.problems import Suite
from kernelproof.runs.bundles.reading import Taken
from kernelproof.runs.reproduction import compared, not_run, settings_again
from kernelproof.types import Reproduction, Rigor, VerifySettings
from kernelproof.types import ReproductionFinding as Finding
from kernelproof.types.bundle import Bundled
from kernelproof.verifier.devices.discovery import device_for
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.referee_process import OnStage

LIMITS = ("load_seconds", "call_seconds", "build_seconds", "memory_bytes")
"""Settings that say how much of this machine a candidate may take: a bundle asks for no more than usual."""


def unknown_problems(attempts: Iterable[Bundled], suite: Suite) -> list[Bundled]:
    """The attempts whose problem is not in the suite, letter by letter.

    A problem's own code runs in the referee with the user's rights, and decides what is right.
    """
    known = {problem.sha256 for problem in suite.problems()}
    return [attempt for attempt in attempts if attempt.problem.sha256 not in known]


def reproduce_taken(
    taken: Taken,
    number: int,
    engine: Engine,
    on_stage: OnStage = lambda _: None,
    *,
    rigor: Rigor | None = None,
    unsafe: bool = False,
) -> Reproduction:
    """Verifies an attempt of a bundle here, and compares; one that was edited is not run.

    `unsafe`: the weakest sandbox will do. A bundle cannot ask for that. Raises MachineError for what this
    machine lacks.
    """
    attempt = taken.attempt
    if attempt is None or taken.tampering:
        then = attempt.verification if attempt else None
        reason = "the bundle does not fit together"
        return not_run(number, then, Finding.TAMPERED, reason, taken.tampering)
    then = attempt.verification
    if lacking := _lacking(then.settings):
        return not_run(number, then, Finding.NOT_COMPARABLE, lacking)
    settings = _settings_here(then.settings, rigor, unsafe)
    try:
        job = Job(attempt.problem, attempt.extraction, settings)
        now = Judge(engine).judge(job, on_stage).verification
    except UsageError as error:
        return not_run(number, then, Finding.NOT_COMPARABLE, f"it cannot be run: {error}")
    assert now is not None
    return compared(number, then, now, None)


def _lacking(settings: VerifySettings) -> str | None:
    """Says what the candidate's backend needs and this machine has not; None where nothing is missing."""
    if settings.backend not in BACKENDS:
        there = ", ".join(names())
        judged = f"it was judged with the backend {settings.backend!r:.60}"
        return f"{judged}, and there are {there}: nothing was run"
    if device_for(settings.backend) is None:
        return f"the backend {settings.backend} needs a GPU, and this machine has none: nothing was run"
    return None


def _settings_here(settings: VerifySettings, rigor: Rigor | None, unsafe: bool) -> VerifySettings:
    usual = VerifySettings(backend=settings.backend)
    most = {name: min(getattr(settings, name), getattr(usual, name)) for name in LIMITS}
    threads = min(settings.threads, len(os.sched_getaffinity(0)))
    here = {**most, "threads": threads, "unsafe": unsafe}
    return settings_again(settings, rigor).model_copy(update=here)
