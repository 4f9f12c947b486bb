"""What callers get: an evaluation and its result, as JSON."""

from __future__ import annotations

from typing import Any

from kernelproof.db.evaluations import StoredEvaluation
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt
from kernelproof.runs.prompts import feedback_on
from kernelproof.types import Status, Verification
from kernelproof.version import policy_of


def answer(store: Store, evaluation: StoredEvaluation) -> dict[str, Any]:
    """An evaluation, with its result once it has one."""
    body: dict[str, Any] = {
        "id": evaluation.id,
        "state": evaluation.state,
        "problem": evaluation.problem_id,
        "priority": evaluation.priority,
        "queue_seconds": evaluation.queue_seconds,
        "reused": evaluation.reused,
        "error": evaluation.error,
        "infrastructure": evaluation.infrastructure,
        "result": None,
    }
    if evaluation.state == "done" and evaluation.attempt_id is not None:
        attempt = store.load_attempt(evaluation.attempt_id)
        body["result"] = _result(attempt)
        body["infrastructure"] = attempt.status is Status.INFRASTRUCTURE_ERROR
    return body


def _result(attempt: StoredAttempt) -> dict[str, Any]:
    verification = attempt.verdict.verification if attempt.verdict else None
    status = attempt.status or Status.INFRASTRUCTURE_ERROR
    judged = verification or attempt.extraction
    return {
        "status": str(status),
        "stage": str(status.stage),
        "reason": judged.reason if judged else "",
        "correct": status is Status.CORRECT,
        "counts": status.counts_against_model,
        "score": score(status, verification),
        "flags": [str(flag) for flag in verification.flags] if verification else [],
        **_times(verification),
        "feedback": feedback_on(attempt),
        "attempt": attempt.id,
        "verification": attempt.verdict.id if attempt.verdict else None,
        "device_seconds": round(verification.device_seconds, 3) if verification else 0.0,
        "verifier": verification.verifier if verification else None,
        "policy": policy_of(verification.verifier) if verification else None,
    }


def score(status: Status, verification: Verification | None) -> float | None:
    """A score for a trainer: None where the result says nothing of the model, so that it is left out; 0 for a
    program that is not correct; else the lower end of the speedup's interval, or 1 where it was not timed.
    """
    if not status.counts_against_model:
        return None
    if status is not Status.CORRECT:
        return 0.0
    measured = verification.measurement if verification else None
    return 1.0 if measured is None else measured.claimed


def _times(verification: Verification | None) -> dict[str, Any]:
    measured = verification.measurement if verification else None
    if measured is None:
        return dict.fromkeys(("speedup", "interval", "pace", "candidate_ms", "baseline_ms"))
    low, high = measured.speedup_interval.low, measured.speedup_interval.high
    return {
        "speedup": measured.speedup,
        "interval": [low, high],
        "pace": str(measured.pace),
        "candidate_ms": measured.candidate_ms,
        "baseline_ms": measured.baseline_ms,
    }
