"""What callers send and get: bounded requests, of which nothing is run here, and answers as JSON."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kernelproof.db.evaluations import StoredEvaluation, Submitted
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt
from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_text
from kernelproof.problems import Suite
from kernelproof.problems.reading import Place, parse_problem
from kernelproof.runs.prompts import feedback_on
from kernelproof.runs.sizes import choose_size
from kernelproof.types import Problem, Status, Verification, VerifySettings
from kernelproof.types.record import explain
from kernelproof.types.verification import RULES
from kernelproof.verifier.devices.discovery import device_for
from kernelproof.version import VERIFIER, policy_of

TEXT_BYTES = 1_000_000
"""Most characters of a candidate or a reference."""
BATCH = 1024
"""Most evaluations in one request."""
CHOSEN = (*(*RULES, "trials", "measure", "measure_seconds", "rigor", "target_half_width", "baselines"),)
"""The settings that callers may choose. The others bound what a candidate may use, and are the operator's."""

Word = Annotated[str, Field(min_length=1, max_length=200)]
Code = Annotated[str, Field(max_length=TEXT_BYTES)]


class EvaluationRequest(BaseModel):
    """One candidate to be evaluated."""

    model_config = ConfigDict(extra="forbid")

    problem: Word | None = Field(default=None, description="Id or name of a problem of the service's suite.")
    reference: Code | None = Field(
        default=None,
        description="A problem's source in place of `problem`, where the operator trusts callers that far.",
    )
    source: Code = Field(description="The candidate: a program, or a model's answer that holds one.")
    settings: dict[str, Any] = Field(
        default_factory=dict, max_length=32, description=f"Of the verification: {', '.join(CHOSEN)}."
    )
    label: Word | None = Field(default=None, description="Name of the run that the result is stored under.")
    priority: int = Field(default=0, ge=-100, le=100, description="Greater ones are taken first.")
    deadline_s: float | None = Field(
        default=None,
        gt=0,
        le=604_800,
        allow_inf_nan=False,
        description="Seconds from now after which it is not begun any more.",
    )
    idempotency_key: Word | None = Field(
        default=None, description="The same key gets the same evaluation, however often it is sent."
    )
    reuse: bool = Field(default=False, description="Whether the stored result of equal work may be taken.")

    @model_validator(mode="after")
    def _one_problem(self) -> EvaluationRequest:
        if (self.problem is None) == (self.reference is None):
            raise ValueError("give either problem (an id) or reference (a problem's source)")
        return self


class BatchRequest(BaseModel):
    """Several candidates: all are taken, or none."""

    model_config = ConfigDict(extra="forbid")

    evaluations: list[EvaluationRequest] = Field(min_length=1, max_length=BATCH)


@dataclass(frozen=True)
class Reader:
    """Makes of a request what the queue takes, with the operator's suite and settings."""

    suite: Suite
    defaults: VerifySettings
    references: bool
    """Whether callers may send problems of their own: those run in the referee with our rights."""
    lock: threading.Lock

    def read(self, request: EvaluationRequest) -> Submitted:
        """Raises UsageError for an unknown problem, a size it has not, or settings that make no sense."""
        problem = self._problem(request)
        settings = self._settings(request.settings, problem)
        key = {
            "problem": problem.sha256,
            "text": sha256_text(request.source),
            "settings": settings.model_dump(mode="json"),
            "verifier": VERIFIER,
        }
        return Submitted(
            problem=problem,
            text=request.source,
            settings=settings,
            request_sha256=sha256_text(json.dumps(key, sort_keys=True)),
            label=request.label,
            priority=request.priority,
            deadline_s=request.deadline_s,
            idempotency_key=request.idempotency_key,
            reuse=request.reuse,
        )

    def _problem(self, request: EvaluationRequest) -> Problem:
        if request.problem is not None:
            with self.lock:  # a suite reads its files when they are first asked for
                return self.suite.find(request.problem)
        if not self.references:
            raise UsageError(
                "this service takes no references from callers, because they run with its rights: give "
                "problem, or ask the operator for --accept-references"
            )
        source = request.reference or ""
        name = f"sent_{sha256_text(source)[:12]}"
        place = Place(path=Path(name), folder="", level=None, number=None, name=name)
        return parse_problem(source, place, "reference", suite="sent")

    def _settings(self, chosen: dict[str, Any], problem: Problem) -> VerifySettings:
        unknown = sorted(set(chosen) - set(CHOSEN))
        if unknown:
            raise UsageError(f"settings: no {', '.join(unknown)}; callers may choose {', '.join(CHOSEN)}")
        given = {**self.defaults.model_dump(mode="json"), **chosen}
        try:
            settings = VerifySettings.model_validate(given)
        except ValidationError as error:
            raise UsageError(f"settings: {explain(error, known=VerifySettings.model_fields)}") from None
        if device_for(settings.backend) is None and not chosen.get("backend"):
            raise UsageError(f"settings: the service's own backend {settings.backend} has no device")
        size = choose_size(chosen.get("size"), settings.backend, [problem])
        return settings.model_copy(update={"size": size})


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
        return dict.fromkeys(("speedup", "interval", "pace", "candidate_ms", "baseline_ms", "busy"))
    low, high = measured.speedup_interval.low, measured.speedup_interval.high
    return {
        "speedup": measured.speedup,
        "interval": [low, high],
        "pace": str(measured.pace),
        "candidate_ms": measured.candidate_ms,
        "baseline_ms": measured.baseline_ms,
        "busy": measured.busy,
    }
