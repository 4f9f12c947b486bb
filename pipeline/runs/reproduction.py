"""Somebody's number, checked: extract, build and verify again from what is stored, and compare."""

from __future__ import annotations

import math

from kernelproof.backends import backend
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt
from kernelproof.engine.engine import Engine
from kernelproof.engine.referee_process import OnStage
from kernelproof.errors import UsageError
from kernelproof.extraction import extract, normalise
from kernelproof.hashing import sha256_text
from kernelproof.types import Measurement, Reproduction, Status, Verification
from kernelproof.types import ReproductionFinding as Finding

DECISIVE = ("gpu.name", "torch", "cuda", "kernelproof")
"""Environment fields that must agree before two times are compared; on a CPU also these:"""
DECISIVE_CPU = ("cpu", "cores")
DECISIVE_SETTINGS = ("backend", "size", "numerics", "purity", "own_kernel", "threads")
"""Settings that decide what a result means; how long and how narrowly was measured is none of them."""
OTHER_GPU, OTHER_BOARD = 0.05, 0.08
"""The allowed difference of two GPUs of one model, as a log-ratio, and of two whose boards have other part
numbers or are not known. The intervals know one GPU only. An argmin was 1.255 and 1.194 times as fast as
eager on H200s of two boards, another 1.044 and 0.985 times: 5.0 and 5.8 %."""
TOO_WIDE = 0.25
"""Where more than this has to be allowed, nothing is said about the times."""


def reproduce(
    store: Store, attempt_id: int, engine: Engine, on_stage: OnStage = lambda _: None
) -> Reproduction:
    """Verifies an attempt again with its own settings and appends the verification.

    Raises UsageError when the attempt holds nothing to reproduce.
    """
    stored = store.load_attempt(attempt_id)
    if stored.verdict is None:
        why = f"it ended as {stored.status}" if stored.status else "it is not finished"
        raise UsageError(f"attempt {attempt_id} was never verified ({why}); there is nothing to reproduce")
    then = stored.verdict.verification
    alterations = (*stored.alterations, *_source_changed(stored, then))
    if alterations:
        return Reproduction(
            attempt_id=attempt_id,
            finding=Finding.ALTERED,
            reason="what is stored is not what was judged",
            alterations=alterations,
            differences={},
            then=then,
            now=None,
            verification_id=None,
        )
    assert stored.source is not None
    settings = then.settings.model_copy(update={"bar": None})  # there is no better one that it is beside
    now = engine.verify(stored.source, stored.problem, settings, on_stage)
    number = store.record_verification(attempt_id, now, kind="reproduce")
    finding, reason = compare(then, now)
    return Reproduction(
        attempt_id=attempt_id,
        finding=finding,
        reason=reason,
        alterations=(),
        differences=environment_differences(then, now),
        then=then,
        now=now,
        verification_id=number,
    )


def _source_changed(stored: StoredAttempt, then: Verification) -> tuple[str, ...]:
    """Whether extracting again from the stored response gives the source that was judged."""
    response = stored.response
    if response is None:
        return ("the response is missing",)
    found = extract(response).candidate
    # Earlier versions made the line endings of an answer plain even where it was nothing but a program.
    same = found and (found.sha256, sha256_text(normalise(found.source)[0]))
    if then.candidate_sha256 not in (same or ()):
        return ("the stored response no longer yields the source that was judged",)
    if stored.problem.sha256 != then.problem_sha256:
        return ("the stored problem is not the one that was judged against",)
    return ()


def compare(then: Verification, now: Verification) -> tuple[Finding, str]:
    """What a new verification says about an old one of the same candidate, with the reason."""
    other = [name for name in DECISIVE_SETTINGS if _setting(then, name) != _setting(now, name)]
    if other:
        said = [f"{name} {_setting(then, name)} then, {_setting(now, name)} now" for name in other]
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
    decisive = [*DECISIVE, *(() if backend(now.settings.backend).on_gpu else DECISIVE_CPU)]
    changed = [name for name in environment_differences(then, now) if name in decisive]
    if changed:
        return Finding.NOT_COMPARABLE, f"correct both times; other {', '.join(changed)}"
    return _compare_times(then.measurement, now.measurement, *_elsewhere(then, now))


def _setting(verification: Verification, name: str) -> object:
    return getattr(verification.settings, name)


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
    joint = math.hypot(_half(then), _half(now))
    allowed = max(joint, then.resolution, now.resolution, gpus)
    both = f"speedup {then.speedup:.3f} then, {now.speedup:.3f} now{where}"
    said = f"{both} ({change:+.1%}, +-{allowed:.1%} allowed)"
    if abs(change) <= allowed:
        finding = Finding.SAME if allowed <= TOO_WIDE else Finding.AMBIGUOUS
    else:
        finding = Finding.FASTER if change > 0 else Finding.SLOWER
    return finding, said


def _half(measurement: Measurement) -> float:
    """Half-width of the speedup's interval, as a log-ratio."""
    return math.log(measurement.speedup_interval.high / measurement.speedup_interval.low) / 2


def environment_differences(then: Verification, now: Verification) -> dict[str, tuple[object, object]]:
    """Fields in which the two environments differ, as (then, now)."""
    if then.environment is None or now.environment is None:
        return {}
    return then.environment.differences(now.environment)
