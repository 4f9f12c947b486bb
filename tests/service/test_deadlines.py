"""A deadline that cannot be met is said at once, by the rate at which the queue was worked off lately."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.service.conftest import NO_PROGRAM, Running, serving
from tests.service.test_requests import error

WAITING = 60
LONG_S = 604_800
"""The longest deadline that a caller may set."""


def batch(service: Running, *items: dict[str, Any]) -> Any:
    body = {"evaluations": [{"problem": "relu", "source": NO_PROGRAM, **item} for item in items]}
    return service.ask("POST", "/v1/evaluations", json=body)


def one(service: Running, **item: Any) -> Any:
    return service.ask("POST", "/v1/evaluations", json={"problem": "relu", "source": NO_PROGRAM, **item})


def queued(service: Running) -> int:
    return int(service.ask("GET", "/v1/queue").json()["states"]["queued"])


def rate(service: Running) -> float:
    return float(service.ask("GET", "/v1/queue").json()["per_second"])


@pytest.mark.ci
def test_a_deadline_is_accepted_or_refused_by_what_waits_before_it(program: Program, suite: Path) -> None:
    with serving(program, suite, "--no-worker") as service:
        assert batch(service, *[{}] * 3, {"deadline_s": 3600}).status_code == 202, "no rate is known yet"
        worker = program.start("service", "workers")
        try:
            service.send(source="equal work", idempotency_key="sent before")
        finally:
            worker.terminate()
            worker.communicate(timeout=60)
        batch(service, *[{}] * WAITING)
        short = WAITING / rate(service) / 10
        refused(service, short)
        accepted(service, short)


def refused(service: Running, short: float) -> None:
    before = queued(service)
    said = error(one(service, deadline_s=short), 409)
    assert f"the deadline of {short:g} s cannot be met: about " in said and "s of work are waiting" in said
    assert one(service, deadline_s=short).json()["error"]["code"] == "deadline_cannot_be_met"
    assert "cannot be met" in error(one(service, deadline_s=short, priority=-1), 409)
    assert "cannot be met" in error(batch(service, {}, {"deadline_s": short}), 409)
    assert queued(service) == before, "something of a refused request was stored"


def accepted(service: Running, short: float) -> None:
    assert one(service, deadline_s=LONG_S).status_code == 202
    assert one(service, deadline_s=short, priority=1).status_code == 202, "nothing waits before it"
    key = {"source": "equal work", "idempotency_key": "sent before"}
    assert one(service, **key, deadline_s=short).json()["state"] == "done", "it was sent before"
    again = one(service, source="equal work", reuse=True, deadline_s=short).json()
    assert again["state"] == "done" and again["reused"], "it needs no worker"
