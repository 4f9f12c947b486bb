"""Events as JSON, an object on a line for each: docs/guide/generate.md describes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kernelproof.report.plain import json_line
from kernelproof.runs.events import Event, Phase
from kernelproof.types import Response, Verification


def event_line(event: Event) -> str:
    """One line of ASCII, so that no text of a model's or a server's reaches a terminal as it is."""
    return json_line(event_json(event))


def event_json(event: Event) -> dict[str, Any]:
    """The names are stable; later versions may add some."""
    key = event.key
    facts: dict[str, Any] = {
        "event": event.phase.value,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "model": event.model,
        "problem": key.problem_id,
        "sample": key.sample,
    }
    if event.phase is Phase.OVER:
        return facts | ({"reason": event.note} if event.note else {})
    facts |= {"turn": key.turn, "attempt": event.attempt_id}
    if event.phase is Phase.ANSWERING:
        facts["tokens"] = event.tokens
    elif event.phase is Phase.WAITING:
        facts["reason"] = event.note
    elif event.phase is Phase.BATCHED:
        facts |= {"batch": event.batch or None, "reason": event.note}
    elif event.phase is Phase.JUDGING:
        facts["stage"] = event.note
    elif event.phase is Phase.ANSWERED:
        facts |= {"reused": event.reused, **_answer(event.response)}
    elif event.phase is Phase.ENDED:
        said = event.verification.reason if event.verification is not None else event.note
        facts["status"] = event.status.value if event.status is not None else None
        facts |= {"reason": said or None, "kept": event.kept, **_times(event.verification)}
        facts |= {"confirmed": True} if event.confirmed else {}
    return facts


def _answer(response: Response | None) -> dict[str, Any]:
    if response is None:
        return {}
    return {
        "usage": response.usage.model_dump() if response.usage is not None else None,
        "cost_usd": response.cost_usd,
        "latency_s": response.latency_s,
        "finish_reason": response.finish_reason,
        "served_model": response.served_model,
        "refusal": response.refusal,
    }


def _times(verification: Verification | None) -> dict[str, Any]:
    found = verification.measurement if verification is not None else None
    if found is None:
        return {"speedup": None}
    return {
        "speedup": found.speedup,
        "speedup_low": found.speedup_interval.low,
        "speedup_high": found.speedup_interval.high,
        "pace": found.pace.value,
        "candidate_ms": found.candidate_ms,
        "baseline_ms": found.baseline_ms,
    }
