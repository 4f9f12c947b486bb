"""The routes that operators look at: health, queue, workers, metrics. Figures are read when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST as TYPE
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kernelproof.choices import Role
from kernelproof.db.evaluations import State
from kernelproof.db.gpus import GpuState
from kernelproof.db.store import Store
from kernelproof.service.middleware import HEALTH, STATE
from kernelproof.service.state import TheCaller, TheService
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
def queue(service: TheService, _: TheCaller) -> dict[str, Any]:
    """Evaluations by state, and verdicts a second."""
    evaluations = service.store.service.evaluations
    counts = evaluations.counts()
    return {
        "states": {state: counts.get(state, 0) for state in STATES},
        "places": service.most,
        "per_second": evaluations.rate(),
        "late_verdicts": evaluations.late_verdicts(),
        "late_builds": evaluations.late_builds(),
    }


@router.get("/v1/workers")
def workers(service: TheService, _: TheCaller) -> dict[str, Any]:
    """Workers and their last sign of life, and the GPUs that judges have seen."""
    return {
        "workers": [worker.model_dump() for worker in service.store.service.workers.all()],
        "gpus": [gpu.model_dump() for gpu in service.store.service.gpus.all()],
    }


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}})
def prometheus(service: TheService, _: TheCaller) -> PlainTextResponse:
    """The same for Prometheus."""
    return PlainTextResponse(figures(service.store, service.watch.waiting), media_type=TYPE)


STATES: tuple[State, ...] = get_args(State)
GPU_STATES: tuple[GpuState, ...] = get_args(GpuState)


def figures(store: Store, waiting: int) -> str:
    """All figures. `waiting`: requests that wait for a result."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(store, waiting))
    return generate_latest(registry).decode()


class _Figures(Collector):
    def __init__(self, store: Store, waiting: int) -> None:
        self._store, self._waiting = store, waiting

    def collect(self) -> Iterator[Metric]:
        counts = self._store.service.evaluations.counts()
        states = GaugeMetricFamily("kernelproof_evaluations", "Evaluations by state.", labels=["state"])
        for state in STATES:
            states.add_metric([state], counts.get(state, 0))
        yield states
        late = self._store.service.evaluations.late_verdicts()
        yield CounterMetricFamily("kernelproof_late_verdicts", "Verdicts refused: the lease was lost.", late)
        late = self._store.service.evaluations.late_builds()
        yield CounterMetricFamily("kernelproof_late_builds", "Builds refused: the lease was lost.", late)
        workers = self._store.service.workers.all()
        alive = sum(worker.alive for worker in workers)
        yield GaugeMetricFamily("kernelproof_workers_alive", "Workers with a recent sign of life.", alive)
        gpus = GaugeMetricFamily("kernelproof_gpus", "GPUs of judges by state.", labels=["state"])
        states_of_gpus = [gpu.state for gpu in self._store.service.gpus.all()]
        for each in GPU_STATES:
            gpus.add_metric([each], states_of_gpus.count(each))
        yield gpus
        rate = self._store.service.evaluations.rate()
        yield GaugeMetricFamily("kernelproof_verdicts_per_second", "Of the last ten minutes.", rate or 0.0)
        yield GaugeMetricFamily("kernelproof_requests_waiting", "Requests that wait for one.", self._waiting)
