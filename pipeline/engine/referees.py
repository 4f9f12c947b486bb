"""The referees of an engine: one for each healthy GPU, or a single one on a machine without.

A thread with a candidate to judge takes a free referee, and waits while all are taken. The work is shared by
that alone, so a GPU with shorter candidates judges more of them. A referee that is put aside is not given out
again, and its work goes to the others.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.devices import discovery
from pipeline.devices.discovery import Gpu
from pipeline.engine.core_sharing import shares_by_gpu
from pipeline.engine.fifo import Fifo
from pipeline.engine.referee_process import ALL_SHARED, RefereeLost, RefereeProcess
from pipeline.types import CoreShares


class Referees:
    """Starts referees as they are wanted, and gives each to one thread at a time. Thread-safe.

    A device is `cuda:0`, which is the GPU of whichever referee it is, or `cpu`.
    """

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._changed = threading.Condition()
        self._running: dict[str, RefereeProcess] = {}
        """By the GPU's UUID; by the empty text where there is none."""
        self._taken: set[str] = set()
        self._waiting: dict[str, Fifo] = defaultdict(lambda: Fifo(self._changed))
        self._expected = 0
        self._closed = False
        used, installed = (
            [gpu.uuid for gpu in found] for found in (discovery.fleet(), discovery.installed())
        )
        self._shares = shares_by_gpu(used, installed, os.sched_getaffinity(0))

    @property
    def others(self) -> tuple[int, ...]:
        """The cores that builds keep to, so that no measurement on a GPU waits for one. Empty: all."""
        return next(iter(self._shares.values()), ALL_SHARED).others

    @contextmanager
    def expected(self, device: str) -> Iterator[None]:
        """While a candidate is on its way to `device`: as many referees come up as there is work for.

        Raises RefereeLost when closed, MachineError when no healthy GPU is left.
        """
        with self._changed:
            outdated = self._outdated()
            self._expected += 1
        try:
            for referee in outdated:
                referee.close()
            with self._changed:
                for place in _places(device)[: self._expected]:
                    self._started(place)
            yield
        finally:
            with self._changed:
                self._expected -= 1

    @contextmanager
    def taken(self, device: str) -> Iterator[RefereeProcess]:
        """A referee of `device` for this thread alone; the thread that waits longest is next. Raises as
        `expected`."""
        with self._changed:
            place = self._waiting[device].wait_for(lambda: self._free(device))[0]
            referee = self._started(place)
            key = _key(place)
            self._taken.add(key)
        try:
            yield referee
        finally:
            with self._changed:
                self._taken.discard(key)
                self._changed.notify_all()

    def one(self, device: str) -> RefereeProcess:
        """Some referee of `device`, perhaps at work. Raises as `expected` does."""
        with self._changed:
            return self._started(_places(device)[0])

    def shares_of(self, referee: RefereeProcess, device: str) -> CoreShares:
        """The cores that are kept for what this referee times on `device`."""
        return ALL_SHARED if device == "cpu" else self._shares.get(_key(referee.gpu), ALL_SHARED)

    def replace(self, lost: RefereeProcess) -> None:
        """Ends a referee; another takes its place when it is wanted."""
        with self._changed:
            if self._running.get(_key(lost.gpu)) is lost:
                del self._running[_key(lost.gpu)]
        lost.close()

    def close(self) -> None:
        """Ends all of them; a thread that waits for one gets RefereeLost."""
        with self._changed:
            self._closed = True
            running, self._running = list(self._running.values()), {}
            self._changed.notify_all()
        for referee in running:
            referee.close()

    def _free(self, device: str) -> list[Gpu | None]:
        """Where nobody is at work, and first where a referee is up already. Raises as `expected` does."""
        self._require_open()
        free = [place for place in _places(device) if _key(place) not in self._taken]
        return sorted(free, key=lambda place: _key(place) not in self._running)

    def _started(self, place: Gpu | None) -> RefereeProcess:
        self._require_open()
        key = _key(place)
        if key not in self._running:
            self._running[key] = RefereeProcess(self._cache, place)
        return self._running[key]

    def _outdated(self) -> list[RefereeProcess]:
        """Takes out the idle referees whose GPU was put aside, and the referee without a GPU if one is
        healthy again."""
        wanted = {_key(place) for place in discovery.fleet()} or {""}
        gone = [key for key in self._running if key not in wanted | self._taken]
        return [self._running.pop(key) for key in gone]

    def _require_open(self) -> None:
        if self._closed:
            raise RefereeLost("the engine was closed")


def _key(place: Gpu | None) -> str:
    return place.uuid if place is not None else ""


def _places(device: str) -> list[Gpu | None]:
    """Where a candidate for `device` can be judged. Raises MachineError when no healthy GPU is left."""
    if device == "cpu":
        return [discovery.chosen_gpu()]
    discovery.require_gpu()
    return list(discovery.fleet())
