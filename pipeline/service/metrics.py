"""Figures for Prometheus, read from the database when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from prometheus_client import CONTENT_TYPE_LATEST as TYPE
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kernelproof.db.evaluation_records import State
from kernelproof.db.gpus import GpuState
from kernelproof.db.store import Store

__all__ = ["STATES", "TYPE", "text"]

STATES: tuple[State, ...] = get_args(State)
GPU_STATES: tuple[GpuState, ...] = get_args(GpuState)


def text(store: Store, waiting: int) -> str:
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
