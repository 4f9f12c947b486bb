"""Contestants in reserve: processes that have imported torch before their work arrives. Each is used once.

Where cores are kept for what is measured they come up on the others, and move when they are seated: so nobody
waits for them. Where all cores are shared they come up between measurements. What they do on a GPU before
they are taken is begun and ended while nothing is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pipeline.nouns import Build, BuildRequest, BuildState, CoreShares
from pipeline.referee.seats.host import BuildService, Contestant, ContestantFailed, ContestantGone
from pipeline.sandbox import Group

PAIR = 2
"""Candidate and baseline: what one verification takes."""
ROOMY = 8
"""Cores for all that is not measured, from which on the processes of four verifications come up."""
PREPARED = 2 * PAIR
"""So many are asked ahead, and hold memory of the GPU for that."""


class Spares:
    """Started contestants, all alike. Nothing was asked of them before they are taken."""

    def __init__(self) -> None:
        self.shares = CoreShares()
        """The cores on which contestants come up, and those on which they are measured."""
        self._jobs = Group()
        self._waiting: list[Contestant] = []
        self._kind: tuple[tuple[int, ...], bool] = ((), False)

    @property
    def ahead(self) -> int:
        """How many are worth having up: a verification's, and those of the next where they come up beside it.

        An import takes as long as a verification or two beside builds; who was up when the one before began
        has a context on the GPU as well.
        """
        if not self.shares.measured:
            return PAIR
        return PAIR * (4 if len(self.shares.others) >= ROOMY else 2)

    def share(self, shares: CoreShares) -> None:
        """From now on contestants come up, and are measured, on these cores."""
        if shares != self.shares:
            self.close()
            self.shares, self._jobs = shares, Group(shares.others)

    def take(
        self, build: BuildService, gpus: Sequence[int], memory_bytes: int, *, unsafe: bool
    ) -> Contestant:
        """A contestant in reserve, or a new one. It asks `build` for its builds."""
        if self._kind == (tuple(gpus), unsafe):
            while self._waiting:
                spare = self._waiting.pop(0)  # the one that has had the most time to come up
                if spare.alive:
                    spare.serve_builds_with(build)
                    spare.allow_memory(memory_bytes)
                    return spare
                spare.close()
        return self._new(build, gpus, memory_bytes, unsafe)

    def refill(self, gpus: Sequence[int], memory_bytes: int, *, unsafe: bool, count: int) -> None:
        """Starts what is missing to so many of this kind; others are ended. Returns before they are up."""
        if self._kind != (tuple(gpus), unsafe):
            self.close()
        self._kind = (tuple(gpus), unsafe)
        while len(self._waiting) < count:
            self._waiting.append(self._new(_none, gpus, memory_bytes, unsafe))

    def prepare(self, request: Callable[[Contestant], dict[str, Any]]) -> None:
        """Sends the next ones that are up their first request ahead. Returns before they have answered."""
        for spare in self._waiting[:PREPARED]:
            if spare.up and spare.prepared is None:
                with suppress(ContestantGone):  # whoever takes it sees that
                    spare.wait_ready()
                    spare.prepare(request(spare))

    def settle(self) -> None:
        """Waits for those that would take time from a measurement: they answer what was sent ahead, or come
        up where all cores are shared."""
        for spare in list(self._waiting):
            if self.shares.measured and spare.prepared is None:
                continue
            try:
                spare.wait_ready()
            except (ContestantFailed, ContestantGone):
                self._waiting.remove(spare)
                spare.close()

    def close(self) -> None:
        """Ends all of them."""
        while self._waiting:
            self._waiting.pop().close()

    def _new(self, build: BuildService, gpus: Sequence[int], memory_bytes: int, unsafe: bool) -> Contestant:
        return Contestant(
            build,
            gpus=gpus,
            memory_bytes=memory_bytes,
            unsafe=unsafe,
            jobs=self._jobs,
            cores=self.shares.measured,
        )


def _none(request: BuildRequest) -> Build:
    return Build(key="", state=BuildState.UNAVAILABLE, name=request.name, log="nothing is loaded yet")
