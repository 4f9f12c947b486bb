"""Somebody's number, checked: extract, build and verify again from what is stored or bundled, and compare. An
audit does so with the results that lead the leaderboard.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from kernelproof.backends import BACKENDS, backend, names
from kernelproof.db.columns import utc_now
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import Kernel, Source, ViewName
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt
from kernelproof.errors import UsageError
from kernelproof.jobs import Job, Judge, Purpose
from kernelproof.problems import Suite
from kernelproof.runs.bundles.reader import CheckedAttempt, program_changed
from kernelproof.runs.bundles.writer import shown_program, verification_of
from kernelproof.types import Measurement, Reproduction, Rigor, Setting, Status, Verification, VerifySettings
from kernelproof.types import ReproductionFinding as Finding
from kernelproof.types.measurement import quotient_reach
from kernelproof.types.reproduction import Bundled
from kernelproof.verifier.devices.discovery import device_for
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.referee_process import OnStage
from kernelproof.version import policy_of

DECISIVE = ("gpu.name", "torch", "cuda", "kernelproof", "policy")
"""Environment fields that must agree before two times are compared; on a CPU also these:"""
DECISIVE_CPU = ("cpu", "cores")
OTHER_GPU, OTHER_BOARD = 0.05, 0.08
"""The allowed difference of two GPUs of one model, as a log-ratio, and of two whose boards have other part
numbers or are not known. The intervals know one GPU only. An argmin was 1.255 and 1.194 times as fast as
eager on H200s of two boards, another 1.044 and 0.985 times: 5.0 and 5.8 %."""
TOO_WIDE = 0.25
"""Where more than this has to be allowed, nothing is said about the times."""


def reproduce(
    store: Store,
    attempt_id: int,
    engine: Engine,
    on_stage: OnStage = lambda _: None,
    *,
    rigor: Rigor | None = None,
    verification_id: int | None = None,
) -> Reproduction:
    """Verifies an attempt again with its own settings and appends the verification.

    `rigor`: in place of its own. `verification_id`: in place of the one that counts. Raises
    UsageError when the attempt holds nothing to reproduce.
    """
    stored = store.load_attempt(attempt_id)
    then = verification_of(stored, verification_id).verification
    alterations = (*stored.alterations, *_changed(store, stored, then))
    if alterations:
        reason = "what is stored is not what was judged"
        return not_run(attempt_id, then, Finding.TAMPERED, reason, alterations)
    settings = settings_again(then.settings, rigor)
    job = Job.of_attempt(stored, settings, "reproduce", purpose=Purpose.MEASUREMENT)
    verdict = Judge(engine, store).judge(job, on_stage)
    assert verdict.verification is not None
    return compared(attempt_id, then, verdict.verification, verdict.verification_id)


def settings_again(settings: VerifySettings, rigor: Rigor | None) -> VerifySettings:
    """The settings of a verification that is repeated; with `rigor` as exact as that."""
    exact = {"rigor": rigor, "target_half_width": None, "measure_seconds": None} if rigor else {}
    return settings.model_copy(update={"bar": None, **exact})  # there is no better one that it is beside


def not_run(
    attempt_id: int,
    then: Verification | None,
    finding: Finding,
    reason: str,
    alterations: tuple[str, ...] = (),
) -> Reproduction:
    """The reproduction of a result that was tampered with, or cannot be run here: nothing was run."""
    return Reproduction(
        attempt_id=attempt_id,
        finding=finding,
        reason=reason,
        alterations=alterations,
        differences={},
        then=then,
        now=None,
        verification_id=None,
    )


def compared(
    attempt_id: int, then: Verification, now: Verification, verification_id: int | None
) -> Reproduction:
    """The reproduction that two verifications make. `verification_id`: the new one's, where it is stored."""
    finding, reason = compare(then, now)
    return Reproduction(
        attempt_id=attempt_id,
        finding=finding,
        reason=reason,
        alterations=(),
        differences=environment_differences(then, now),
        then=then,
        now=now,
        verification_id=verification_id,
    )


def _changed(store: Store, stored: StoredAttempt, then: Verification) -> tuple[str, ...]:
    """The parts of a stored attempt that are no longer what was judged, a line for each."""
    if stored.response is None or stored.extraction is None:
        return ("the response is missing",)
    base = shown_program(store, stored)
    program = program_changed(stored.response, stored.extraction, base, then)
    if stored.problem.sha256 != then.problem_sha256:
        return (*program, "the stored problem is not the one that was judged against")
    return tuple(program)


def compare(then: Verification, now: Verification) -> tuple[Finding, str]:
    """What a new verification says about an old one of the same candidate, with the reason."""
    rules = [(name, was, getattr(now.settings, name)) for name, was in then.settings.setting.rules.items()]
    said = [f"{name} {was} then, {other} now" for name, was, other in rules if was != other]
    if said:
        return Finding.NOT_COMPARABLE, f"judged by other rules: {'; '.join(said)}"
    if now.status is not then.status:
        said_both = f"{then.status} then, {now.status} now: {now.reason}"
        if now.status in (Status.INFRASTRUCTURE_ERROR, Status.BUILT_NOT_RUN):
            return Finding.NOT_COMPARABLE, said_both
        if then.status is Status.CORRECT:
            return Finding.NOW_WRONG, said_both
        return (Finding.NOW_RIGHT if now.status is Status.CORRECT else Finding.OTHER_FAILURE), said_both
    if then.measurement is None or now.measurement is None:
        return Finding.SAME, f"{now.status} both times"
    if then.settings.threads != now.settings.threads:
        threads = f"threads {then.settings.threads} then, {now.settings.threads} now"
        return Finding.NOT_COMPARABLE, f"correct both times, but the times are not compared: {threads}"
    decisive = [*DECISIVE, *(() if backend(now.settings.backend).on_gpu else DECISIVE_CPU)]
    changed = [name for name in environment_differences(then, now) if name in decisive]
    if changed:
        return (
            Finding.NOT_COMPARABLE,
            f"correct both times, but the times are not compared: other {', '.join(changed)}",
        )
    return _compare_times(then.measurement, now.measurement, *_elsewhere(then, now))


def _elsewhere(then: Verification, now: Verification) -> tuple[float, str]:
    """What another GPU of the same model may change, and how that is said; 0 for the same one."""
    if "gpu.uuid" not in environment_differences(then, now):
        return 0.0, ""
    boards = [one.environment.gpu.board for one in (then, now) if one.environment and one.environment.gpu]
    if None not in boards and len(set(boards)) == 1:
        return OTHER_GPU, ", on another GPU of this model"
    known = " and ".join(str(board or "unknown") for board in boards)
    return OTHER_BOARD, f", on another GPU of this model (boards: {known})"


def _compare_times(then: Measurement, now: Measurement, gpus: float, where: str) -> tuple[Finding, str]:
    """By the two intervals, which hold what another pair of processes changes, the resolutions, and what
    other `gpus` may change."""
    change = math.log(now.speedup / then.speedup)
    below, above = quotient_reach(now, then)
    allowed = max(above if change < 0 else below, then.resolution, now.resolution, gpus)
    both = f"speedup {then.speedup:.3f} then, {now.speedup:.3f} now{where}"
    said = f"{both} ({change:+.1%}, +-{allowed:.1%} allowed)"
    if abs(change) <= allowed:
        if allowed > TOO_WIDE:
            return Finding.AMBIGUOUS, f"{said}; {_remedy(then)}"
        return Finding.SAME, said
    return (Finding.FASTER if change > 0 else Finding.SLOWER), said


def _remedy(then: Measurement) -> str:
    """A remedy for a comparison that is too wide to say anything."""
    if max(_half(then), then.resolution) > TOO_WIDE:
        return "the first measurement is so wide that no second one can confirm it: it has to be made anew"
    return "a quiet machine and --rigor publish make the new measurement narrower"


def _half(measurement: Measurement) -> float:
    """Half-width of the speedup's interval, as a log-ratio."""
    return math.log(measurement.speedup_interval.high / measurement.speedup_interval.low) / 2


def environment_differences(then: Verification, now: Verification) -> dict[str, tuple[object, object]]:
    """Fields in which the two environments differ, and the policy where that is another, as (then, now)."""
    policies = policy_of(then.verifier), policy_of(now.verifier)
    other = {"policy": policies} if policies[0] != policies[1] else {}
    if then.environment is None or now.environment is None:
        return {**other}
    return {**then.environment.differences(now.environment), **other}


LIMITS = ("load_seconds", "call_seconds", "build_seconds", "memory_bytes")
"""Settings that say how much of this machine a candidate may take: a bundle asks for no more than usual."""


def unknown_problems(attempts: Iterable[Bundled], suite: Suite) -> list[Bundled]:
    """The attempts whose problem is not in the suite, letter by letter.

    A problem's own code runs in the referee with the user's rights, and decides what is right.
    """
    known = {problem.sha256 for problem in suite.problems()}
    return [attempt for attempt in attempts if attempt.problem.sha256 not in known]


def reproduce_bundled(
    checked: CheckedAttempt,
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
    attempt = checked.attempt
    if attempt is None or checked.tampering:
        then = attempt.verification if attempt else None
        reason = "the bundle does not fit together"
        return not_run(number, then, Finding.TAMPERED, reason, checked.tampering)
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


_BY_PROBLEM: tuple[ViewName, ...] = ("problem",)


class Leader(NamedTuple):
    source: Source
    setting: Setting
    problem_id: str
    best: Kernel


def leaders(store: Store, filters: Filters) -> list[Leader]:
    """The best of each problem of each board, in the leaderboard's order.

    Raises UsageError where nothing that passes the filters ranks.
    """
    board = store.scores.leaderboard(filters, _BY_PROBLEM)
    found = [
        Leader(row.source, row.setting, row.problem_id, row.best)
        for row in board.problems
        if row.best is not None
    ]
    if not found:
        raise UsageError("\n  ".join(("no measured result that passes these filters ranks", *board.hints)))
    return found


@dataclass(frozen=True)
class Outcome:
    results: list[tuple[Leader, Reproduction]] = field(default_factory=list)

    @property
    def held(self) -> int:
        return sum(one.finding.confirms for _, one in self.results)

    @property
    def refuted(self) -> int:
        return sum(one.finding.refutes for _, one in self.results)

    @property
    def undecided(self) -> int:
        return len(self.results) - self.held - self.refuted


def by_place(leaders: Iterable[Leader], engine: Engine) -> tuple[list[Leader], list[Leader]]:
    """The results of devices like one of this machine's, and those of others: not comparable here."""

    @cache
    def device(backend: str) -> str | None:
        if backend not in BACKENDS or not BACKENDS.find(backend).is_installed or device_for(backend) is None:
            return None
        return engine.environment(VerifySettings(backend=backend)).device_name

    here: list[Leader] = []
    elsewhere: list[Leader] = []
    for leader in leaders:
        is_here = leader.setting.device == device(leader.setting.backend)
        (here if is_here else elsewhere).append(leader)
    return here, elsewhere


def drawn(leaders: Sequence[Leader], count: int, seed: int) -> list[Leader]:
    """So many of the results, or all if there are fewer; the same seed draws the same ones of a board."""
    places = random.Random(seed).sample(range(len(leaders)), min(count, len(leaders)))
    return [leaders[place] for place in sorted(places)]


def audit(
    store: Store,
    chosen: Iterable[Leader],
    engine: Engine,
    *,
    seed: int | None = None,
    on_done: Callable[[Leader, Reproduction], None] = lambda _leader, _reproduction: None,
) -> Outcome:
    """Verifies each result again and keeps the finding at once: an interruption loses none.

    `seed`: by which they were drawn. Raises what `Engine.verify` raises.
    """
    began, outcome = utc_now(), Outcome()
    for leader in chosen:
        best = leader.best
        reproduction = reproduce(store, best.attempt_id, engine, verification_id=best.verification_id)
        store.audits.record(began, seed, best.verification_id, reproduction)
        outcome.results.append((leader, reproduction))
        on_done(leader, reproduction)
    return outcome
