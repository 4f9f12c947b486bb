"""The referees of an engine: one for each healthy GPU, or a single one on a machine without.

A thread with a candidate to judge takes a free referee, and waits while all are taken. The work is shared by
that alone, so a GPU with shorter candidates judges more of them. A referee that is put aside is not given out
again, and its work goes to the others.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelproof.types import CoreShares
from kernelproof.verifier.devices import discovery
from kernelproof.verifier.devices.discovery import Gpu
from kernelproof.verifier.engine.core_sharing import Fifo, shares_by_gpu
from kernelproof.verifier.engine.referee_process import ALL_SHARED, RefereeLost, RefereeProcess
from kernelproof.verifier.engine.stop import Stop


class Referees:
    """Starts referees as they are wanted, and gives each to one thread at a time. Thread-safe.

    A device is `cuda:0`, which is the GPU of whichever referee it is, or `cpu`.
    """

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._changed = threading.Condition()
        self._running: dict[str, RefereeProcess] = {}
        """Referees by the GPU's UUID, or by the empty text without a GPU."""
        self._readied: dict[str, RefereeProcess] = {}
        """Those that were told to get ready."""
        self._reserved: set[str] = set()
        self._waiting: dict[str, Fifo] = defaultdict(lambda: Fifo(self._changed))
        self._expected = 0
        self._closed = False
        self._busy = BusyTime()
        used, installed = (
            [gpu.uuid for gpu in found] for found in (discovery.fleet(), discovery.installed())
        )
        self._shares = shares_by_gpu(used, installed, os.sched_getaffinity(0))

    @property
    def others(self) -> tuple[int, ...]:
        """The cores that builds keep to, so that no measurement on a GPU waits for one. Empty: all."""
        return next(iter(self._shares.values()), ALL_SHARED).others

    @contextmanager
    def expected(self, device: str, ready: Callable[[RefereeProcess], None] | None = None) -> Iterator[None]:
        """Starts referees, as many as there is work for, while a candidate is on its way to `device`.

        `ready`: called first for each new referee, in a thread of its own, before a candidate gets the
        referee. Raises RefereeLost when closed, MachineError when no healthy GPU is left.
        """
        with self._changed:
            outdated = self._outdated()
            self._expected += 1
        try:
            for referee in outdated:
                referee.close()
            with self._changed:
                for place in _places(device)[: self._expected]:
                    referee = self._started(place)
                    if ready is not None:
                        self._get_ready(referee, ready)
            yield
        finally:
            with self._changed:
                self._expected -= 1

    @contextmanager
    def reserved(self, device: str, stop: Stop | None = None) -> Iterator[RefereeProcess]:
        """A referee of `device` for this thread alone; the thread that waits longest is next. Raises as
        `expected`, and Stopped."""
        with self._changed:
            place = self._waiting[device].wait_for(lambda: self._free(device), stop)[0]
            referee = self._started(place)
            key = _key(place)
            self._reserved.add(key)
            self._busy.began(key)
        try:
            yield referee
        finally:
            with self._changed:
                self._busy.ended(key)
                self._reserved.discard(key)
                self._changed.notify_all()

    @property
    def busy_share(self) -> float | None:
        """Seconds in which a referee had a candidate over the seconds since its start, summed over them.

        None before the first one started.
        """
        with self._changed:
            return self._busy.share

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

    def _get_ready(self, referee: RefereeProcess, ready: Callable[[RefereeProcess], None]) -> None:
        key = _key(referee.gpu)
        if self._readied.get(key) is referee or key in self._reserved:
            return
        self._readied[key] = referee
        self._reserved.add(key)

        def work() -> None:
            try:
                ready(referee)
            finally:
                with self._changed:
                    self._reserved.discard(key)
                    self._changed.notify_all()

        threading.Thread(target=work, name="getting ready", daemon=True).start()

    def _free(self, device: str) -> list[Gpu | None]:
        """The free places, first those where a referee is up. No more referees start than there are
        candidates: a candidate waits for a referee that gets ready. Raises as `expected` does."""
        self._require_open()
        places = _places(device)
        wanted = {*map(_key, places[: max(1, self._expected)]), *self._running}
        free = [place for place in places if _key(place) in wanted - self._reserved]
        return sorted(free, key=lambda place: _key(place) not in self._running)

    def _started(self, place: Gpu | None) -> RefereeProcess:
        self._require_open()
        key = _key(place)
        if key not in self._running:
            self._running[key] = RefereeProcess(self._cache, place)
            self._busy.started(key)
        return self._running[key]

    def _outdated(self) -> list[RefereeProcess]:
        """Takes out the idle referees whose GPU was put aside, and the referee without a GPU if one is
        healthy again."""
        wanted = {_key(place) for place in discovery.fleet()} or {""}
        gone = [key for key in self._running if key not in wanted | self._reserved]
        return [self._running.pop(key) for key in gone]

    def _require_open(self) -> None:
        if self._closed:
            raise RefereeLost("the engine was closed")


class BusyTime:
    """How long each of several workers was at work since it started, in seconds. Not thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started: dict[str, float] = {}
        self._since: dict[str, float] = {}
        self._busy_s = 0.0

    def started(self, key: str) -> None:
        """A worker is there; one that takes the place of another goes on with its time."""
        self._started.setdefault(key, self._clock())

    def began(self, key: str) -> None:
        """It has work."""
        self._since[key] = self._clock()

    def ended(self, key: str) -> None:
        """It has none any more."""
        self._busy_s += self._clock() - self._since.pop(key)

    @property
    def share(self) -> float | None:
        """From 0 to 1; None before one started."""
        now = self._clock()
        whole = sum(now - since for since in self._started.values())
        if whole <= 0:
            return None
        return (self._busy_s + sum(now - since for since in self._since.values())) / whole


def _key(place: Gpu | None) -> str:
    return place.uuid if place is not None else ""


def _places(device: str) -> list[Gpu | None]:
    """Where a candidate for `device` can be judged. Raises MachineError when no healthy GPU is left."""
    if device == "cpu":
        return [discovery.chosen_gpu()]
    discovery.require_gpu()
    return list(discovery.fleet())
