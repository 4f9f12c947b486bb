"""The warm pool: contestants that imported torch before their work arrives. A candidate's is used once. A
baseline's may serve the next one too, since drivers make few contexts a second for all GPUs of a host.

Where cores are kept for measurements, the processes start on the other cores, and move when they get their
device. So no measurement waits for them. Where all cores are shared they come up between measurements. Their
work on a GPU before they are taken begins and ends while nothing is timed.

After a verdict the cleanup is deferred: the processes of the verification end, its memory is given back, and
new processes start, while the next verification begins. A measurement waits for the end of all this.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from kernelproof.types import Build, BuildRequest, BuildState, CoreShares
from kernelproof.verifier.sandbox import Group
from kernelproof.verifier.workers.client import (
    START_SECONDS,
    BuildService,
    Contestant,
    ContestantFailed,
    ContestantGone,
)

_Kind = tuple[tuple[int, ...], bool]
"""GPUs, and whether without a sandbox."""
PAIR = 2
"""Candidate and baseline: what one verification takes."""
ROOMY = 8
"""Cores for all that is not measured, from which on the processes of four verifications come up."""
PREPARED = 2 * PAIR
"""The number of processes that are asked ahead. Each holds memory of the GPU."""
AT_ONCE = 1
"""The number of them that are asked at a time: a measurement waits for those that have begun."""
MOST_RESETS = 16
"""A baseline's process ends after so many."""
LOOK_S = 0.005
"""Seconds between two looks whether another process may be asked ahead."""


class WarmPool:
    """Started contestants, all alike. Nothing was asked of them before they are taken.

    One thread may refill while another one takes.
    """

    def __init__(self) -> None:
        self.shares = CoreShares()
        """The cores on which contestants come up, and those on which they are measured."""
        self._jobs = Group()
        self._lock = threading.Lock()
        """Of what waits; nothing is started under it."""
        self._waiting: list[Contestant] = []
        self._kind: _Kind = ((), False)
        self._free: tuple[_Kind, Contestant] | None = None
        """A baseline's process that is free again."""
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="ahead")
        self._pending: Future[None] | None = None
        self._near, self._enough = threading.Event(), threading.Event()

    @property
    def ahead(self) -> int:
        """How many are worth having up where times are asked for: a verification's, and those of the next
        where they come up beside it.

        An import takes as long as a verification or two beside builds; one that was up when the verification
        before began has a context on the GPU as well.
        """
        if not self.shares.measured:
            return PAIR
        return PAIR * (4 if len(self.shares.others) >= ROOMY else 2)

    @property
    def ahead_unmeasured(self) -> int:
        """The same where no times are asked for: nobody runs a baseline then."""
        return self.ahead // PAIR

    def share(self, shares: CoreShares) -> None:
        """From now on contestants come up, and are measured, on these cores."""
        if shares != self.shares:
            self.close()
            self.shares, self._jobs = shares, Group(shares.others)

    def take(
        self, build: BuildService, gpus: Sequence[int], memory_bytes: int, *, unsafe: bool
    ) -> Contestant:
        """A contestant in reserve, or a new one. It asks `build` for its builds."""
        while (spare := self._next((tuple(gpus), unsafe))) is not None:
            if spare.alive and not (spare.prepared is not None and spare.answered and _has_failed(spare)):
                spare.serve_builds_with(build)
                spare.allow_memory(memory_bytes)
                return spare
            spare.close()
        return self._new(build, gpus, memory_bytes, unsafe)

    def put_back(self, baseline: Contestant, gpus: Sequence[int], seconds: float, *, unsafe: bool) -> None:
        """Keeps a baseline's process for the next one, unless it does not let go of its reference within so
        many seconds, has had many, or another is kept already: then it is ended."""
        try:
            baseline.reset(seconds)
        except (ContestantFailed, ContestantGone):
            baseline.close()
            return
        with self._lock:
            wanted = self._free is None and baseline.resets < MOST_RESETS
            if wanted:
                self._free = (tuple(gpus), unsafe), baseline
        if not wanted:
            baseline.close()

    def take_used(self, gpus: Sequence[int], memory_bytes: int, *, unsafe: bool) -> Contestant | None:
        """The process that was put back, for the next baseline; None where there is none of this kind."""
        with self._lock:
            free, self._free = self._free, None
        if free is None:
            return None
        kind, baseline = free
        if kind != (tuple(gpus), unsafe) or not baseline.alive:
            baseline.close()
            return None
        baseline.allow_memory(memory_bytes)
        return baseline

    def _next(self, kind: _Kind) -> Contestant | None:
        """The one of this kind that has had the most time to come up."""
        with self._lock:
            return self._waiting.pop(0) if self._waiting and self._kind == kind else None

    def refill(self, gpus: Sequence[int], memory_bytes: int, *, unsafe: bool, count: int) -> None:
        """Starts what is missing to so many of this kind; others are ended. Returns before they are up."""
        kind = (tuple(gpus), unsafe)
        if self._kind != kind:
            self.close(kind)
        while len(self._waiting) < count:
            spare = self._new(_none, gpus, memory_bytes, unsafe)
            with self._lock:
                wanted = self._kind == kind
                if wanted:
                    self._waiting.append(spare)
            if not wanted:  # any more: another thread took to another kind
                spare.close()
                return

    def prepare(
        self,
        request: dict[str, Any],
        gpus: Sequence[int],
        *,
        unsafe: bool,
        may_begin: Callable[[], bool] = lambda: True,
    ) -> None:
        """Sends those in reserve of this kind their first request ahead: one at a time, once each is up and
        `may_begin` says so, until `PREPARED` have theirs, or `enough`. Returns at once.

        Those for whom there was no time are asked beside the next verification. Where one fails it is ended,
        and no further one is asked: a candidate may keep the memory that they need.
        """
        self.enough()
        self._near, self._enough = threading.Event(), threading.Event()
        kind, until = (tuple(gpus), unsafe), (self._near, self._enough)
        self._pending = self._asking.submit(self._ask_in_turn, request, kind, may_begin, *until)

    def _ask_in_turn(
        self,
        request: dict[str, Any],
        kind: _Kind,
        may_begin: Callable[[], bool],
        near: threading.Event,
        enough: threading.Event,
    ) -> None:
        last: Contestant | None = None
        while not enough.is_set():
            with self._lock:
                ahead = [spare for spare in self._waiting if spare.prepared is not None]
            if len(ahead) >= PREPARED or (ahead and near.is_set()):
                break
            if last is not None and last.answered and self._drops(last):
                break
            if last is not None and last not in ahead:  # it was taken meanwhile
                ahead.append(last)
            if may_begin() and sum(not spare.answered for spare in ahead) < AT_ONCE:
                last = self._ask_next(request, kind) or last
            enough.wait(LOOK_S)

    def _ask_next(self, request: dict[str, Any], kind: _Kind) -> Contestant | None:
        """Asks the first that is up and was not asked yet, if there is one. Nobody can take it meanwhile."""
        with self._lock:
            for spare in self._waiting[:PREPARED] if self._kind == kind else ():
                if spare.up and spare.prepared is None:
                    with suppress(ContestantGone):  # the thread that takes it sees that
                        spare.wait_ready()
                        spare.prepare(request)
                        return spare
        return None

    def _drops(self, spare: Contestant) -> bool:
        """Ends one in reserve that could not do what was sent ahead, and says whether it did so."""
        with self._lock:
            if spare not in self._waiting or not _has_failed(spare):
                return False
            self._waiting.remove(spare)
        spare.close()
        return True

    def nearly_enough(self) -> None:
        """A measurement is near: no further process is asked ahead, unless none in reserve has been."""
        self._near.set()

    def enough(self) -> None:
        """No further process is asked ahead."""
        pending = self._pending  # before the event: both belong to this one or to an earlier `prepare`
        self._enough.set()
        if pending is not None:
            pending.result()

    def under_way(self) -> Callable[[], None]:
        """A function that waits until the processes at work now have answered: then the device can be left to
        others. One that is taken meanwhile answers its taker."""
        with self._lock:
            at_work = [spare for spare in self._waiting if not spare.answered]

        def over() -> None:
            until = time.monotonic() + START_SECONDS
            while time.monotonic() < until and not all(spare.answered for spare in at_work):
                time.sleep(LOOK_S)

        return over

    def settle(self) -> None:
        """Waits for those that would take time from a measurement: they answer what was sent ahead, or come
        up where all cores are shared."""
        self.enough()
        with self._lock:
            waiting = list(self._waiting)
        for spare in waiting:
            if self.shares.measured and spare.prepared is None:
                continue
            if _has_failed(spare):
                with self._lock:
                    self._waiting.remove(spare)
                spare.close()

    def close(self, kind: _Kind | None = None) -> None:
        """Ends all of them. From now on those of `kind` are wanted, where it is given."""
        self.enough()
        with self._lock:
            waiting, self._waiting, self._kind = self._waiting, [], kind or self._kind
            free, self._free = self._free, None
        for spare in waiting:
            spare.close()
        if free is not None:
            free[1].close()

    def _new(self, build: BuildService, gpus: Sequence[int], memory_bytes: int, unsafe: bool) -> Contestant:
        return Contestant(
            build,
            gpus=gpus,
            memory_bytes=memory_bytes,
            unsafe=unsafe,
            jobs=self._jobs,
            cores=self.shares.measured,
        )


def _has_failed(spare: Contestant) -> bool:
    """Whether it did not come up, or could not do what was sent ahead. Waits for that."""
    try:
        spare.wait_ready()
    except (ContestantFailed, ContestantGone):
        return True
    return False


def _none(request: BuildRequest) -> Build:
    return Build(key="", state=BuildState.UNAVAILABLE, name=request.name, log="nothing is loaded yet")


class DeferredCleanup:
    """Does one thing after the other in a thread of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="behind")
        self._pending: deque[tuple[Future[None], int]] = deque()

    @property
    def nbytes(self) -> int:
        """Bytes that will be free when all is done."""
        return sum(nbytes for future, nbytes in self._pending if not future.done())

    def later(self, work: Callable[[], None], nbytes: int = 0) -> None:
        """Calls `work`, which frees so many bytes, when all that came before it is done. Returns at once."""
        self._pending.append((self._pool.submit(work), nbytes))

    def wait(self) -> None:
        """Returns when nothing is left to do. Raises what the work raised."""
        while self._pending:
            self._pending.popleft()[0].result()
