"""The cores, shared between builds and measurements: a time is worth nothing while compilers take its core.

Measuring a CPU, all cores are its own (`Cores`). Measuring GPUs, each has some cores to itself while the
others compile (`shares_by_gpu`): the process that launches kernels and waits for them needs its core at
once.

`Fifo` lets threads through in the order in which they came. A plain condition lets them through in no order
at all; in a batch other threads always wait too, and unlucky ones would wait for most of the batch.
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from kernelproof.types import CoreShares
from kernelproof.verifier.engine.referee_process import RefereeLost
from kernelproof.verifier.engine.stop import Stop

T = TypeVar("T")


class Fifo:
    """A queue before something that `changed` guards. Its waiters are let through in the order they came."""

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._queue: deque[object] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def wait_for(self, ready: Callable[[], T], stop: Stop | None = None) -> T:
        """Waits until this caller is the first of the queue and `ready()` is true, and returns what it
        returned.

        The caller holds `changed`. Only the first of the queue calls `ready`; its exceptions pass through.
        Raises Stopped when `stop` is asked meanwhile.
        """
        stop = stop or Stop()
        ticket = object()
        self._queue.append(ticket)
        try:
            with stop.by(self._wake):
                while not (self._queue[0] is ticket and (found := ready())):
                    self._changed.wait()
                    stop.check()
                return found
        finally:
            self._queue.remove(ticket)
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


MEASURED_CORES = 2
"""Cores for each GPU: one for the process that is timed, one for the referee."""
FEW_CORES = 4
"""Up to so many cores there is a build for each."""
FIRST_PER_CORE, BUILDS_PER_CORE = 0.6, 0.9
"""Builds for each core on machines with more cores: fewer until the first has ended, since a GPU waits for it
(with 14 builds on 14 cores it took twice as long), and more afterwards, when the rate counts."""
TOPOLOGY = Path("/sys/devices/system/cpu")


def shares_by_gpu(
    used: Collection[str], installed: Collection[str], cores: Collection[int], topology: Path = TOPOLOGY
) -> dict[str, CoreShares]:
    """The cores of each GPU that is used, out of `cores`, by its UUID.

    Every GPU of the machine counts: other kernelproof processes may use GPUs that are hidden from this
    process, and all processes have to come to the same shares. Only where the cores do not suffice for all,
    those used count alone.
    """
    everywhere = [*installed, *(uuid for uuid in used if uuid not in installed)]
    found = dict(zip(everywhere, shares(len(everywhere), cores, topology), strict=True))
    if not any(share.measured for share in found.values()):
        return dict(zip(used, shares(len(used), cores, topology), strict=True))
    return {uuid: found[uuid] for uuid in used}


def shares(gpus: int, cores: Collection[int], topology: Path = TOPOLOGY) -> list[CoreShares]:
    """The shares of so many GPUs in `cores`, all with the same `others`.

    Cores that are one piece of silicon go together, or a compiler next door, or the referee, would slow the
    measurement. At most half of all are taken; where that is not enough for every GPU, none has cores of its
    own.
    """
    pieces = _pieces(cores, topology)
    taken = [pieces[MEASURED_CORES * gpu :][:MEASURED_CORES] for gpu in range(gpus)]
    others = tuple(sorted(core for piece in pieces[MEASURED_CORES * gpus :] for core in piece))
    if any(len(own) < MEASURED_CORES for own in taken) or 2 * len(others) < len(cores):
        return [CoreShares()] * gpus
    return [
        CoreShares(measured=tuple(timed), referee=tuple(referee), others=others) for timed, referee in taken
    ]


def _pieces(cores: Collection[int], topology: Path) -> list[list[int]]:
    """The cores, those of one piece of silicon together; each by itself where the kernel does not say."""
    pieces: list[list[int]] = []
    for core in sorted(cores):
        if any(core in piece for piece in pieces):
            continue
        siblings = _siblings(topology / f"cpu{core}" / "topology" / "thread_siblings_list")
        pieces.append(sorted({core, *siblings} & set(cores)))
    return pieces


def _siblings(path: Path) -> set[int]:
    """Numbers of a list such as `0,64` or `2-3`, as the kernel writes it; none where there is no file."""
    try:
        parts = re.findall(r"(\d+)(?:-(\d+))?", path.read_text())
    except OSError:
        return set()
    return {number for first, last in parts for number in range(int(first), int(last or first) + 1)}


def measured_threads() -> int:
    """Threads with which a CPU is measured where a run does not say: one core is left for everything else.

    Where all cores are used, every process that wakes up takes one from the side that is timed; on two cores
    a call takes half the time or all of it, by the core on which its second thread wakes up.
    """
    return max(1, len(os.sched_getaffinity(0)) - 1)


def builds_at_once(cores: int) -> tuple[int, int]:
    """Candidates that are built at the same time with so many cores: before the first has ended, after."""
    few = min(cores, FEW_CORES)
    return max(few, round(FIRST_PER_CORE * cores)), max(few, round(BUILDS_PER_CORE * cores))


class Cores:
    """Many builds, or one measurement that needs the cores for itself. Builds that wait go first. Within each
    kind the first to come goes first.

    So a batch on a CPU compiles as many candidates as it holds, and then measures them one by one.
    """

    def __init__(self, first: int, builders: int) -> None:
        """`first`: builds at the same time until one has ended; `builders`: afterwards."""
        self._most, self._builders = first, builders
        self._changed = threading.Condition()
        self._builds, self._measurements = Fifo(self._changed), Fifo(self._changed)
        self._building = 0
        self._measuring = self._closed = False

    @contextmanager
    def building(self, stop: Stop | None = None) -> Iterator[None]:
        """A place for one build; the others wait. Raises RefereeLost when closed meanwhile, Stopped."""
        with self._changed:
            self._wait(self._builds, lambda: self._building < self._most and not self._measuring, stop)
            self._building += 1
        try:
            yield
        finally:
            with self._changed:
                self._building -= 1
                self._most = self._builders
                self._changed.notify_all()

    @contextmanager
    def measuring(self, stop: Stop | None = None) -> Iterator[None]:
        """All cores, once nothing is built or waits to be. Raises as `building` does."""
        with self._changed:
            self._wait(self._measurements, self._quiet, stop)
            self._measuring = True
        try:
            yield
        finally:
            with self._changed:
                self._measuring = False
                self._changed.notify_all()

    def _quiet(self) -> bool:
        return not (self._building or self._builds or self._measuring)

    def close(self) -> None:
        """Ends every wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wait(self, queue: Fifo, ready: Callable[[], bool], stop: Stop | None) -> None:
        queue.wait_for(lambda: self._closed or ready(), stop)
        if self._closed:
            raise RefereeLost("the engine was closed")
