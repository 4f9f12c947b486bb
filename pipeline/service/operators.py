"""The routes that operators look at: health, queue, workers, metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from kernelproof.choices import Role
from kernelproof.service import metrics
from kernelproof.service.guard import HEALTH, STATE
from kernelproof.service.state import Caller, TheService
from kernelproof.version import VERIFIER

router = APIRouter()


@router.get(HEALTH)
def health(request: Request, service: TheService) -> dict[str, Any]:
    """Whether the database answers, and whether a worker or judge is alive."""
    if getattr(request.state, STATE) is None:  # a stranger
        return {"status": "ok"}
    alive = sum(each.alive and each.role != Role.BUILD for each in service.store.service.workers.all())
    return {"status": "ok" if alive else "no worker", "workers": alive, "verifier": VERIFIER}


@router.get("/v1/queue")
def queue(service: TheService, _: Caller) -> dict[str, Any]:
    """Evaluations by state, and verdicts a second."""
    evaluations = service.store.service.evaluations
    counts = evaluations.counts()
    return {
        "states": {state: counts.get(state, 0) for state in metrics.STATES},
        "places": service.most,
        "per_second": evaluations.rate(),
        "late_verdicts": evaluations.late_verdicts(),
        "late_builds": evaluations.late_builds(),
    }


@router.get("/v1/workers")
def workers(service: TheService, _: Caller) -> dict[str, Any]:
    """Workers and their last sign of life, and the GPUs that judges have seen."""
    return {
        "workers": [worker.model_dump() for worker in service.store.service.workers.all()],
        "gpus": [gpu.model_dump() for gpu in service.store.service.gpus.all()],
    }


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}})
def prometheus(service: TheService, _: Caller) -> PlainTextResponse:
    """The same for Prometheus."""
    return PlainTextResponse(metrics.text(service.store, service.watch.waiting), media_type=metrics.TYPE)
