"""Contestants in reserve: processes that have imported torch before their work arrives. Each is used once."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.nouns import Build, BuildRequest, BuildState
from pipeline.referee.seats.host import BuildService, Contestant, ContestantGone

PAIR = 2
"""Candidate and baseline: what one verification takes."""


class Spares:
    """At most a pair of started contestants, all alike. Nothing was asked of them before they are taken."""

    def __init__(self) -> None:
        self._waiting: list[Contestant] = []
        self._kind: tuple[tuple[int, ...], bool] = ((), False)

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
        return Contestant(build, gpus=gpus, memory_bytes=memory_bytes, unsafe=unsafe)

    def refill(self, gpus: Sequence[int], memory_bytes: int, *, unsafe: bool, count: int = PAIR) -> None:
        """Starts what is missing to so many of this kind; others are ended. Returns before they are up."""
        if self._kind != (tuple(gpus), unsafe):
            self.close()
        self._kind = (tuple(gpus), unsafe)
        while len(self._waiting) < count:
            self._waiting.append(Contestant(_none, gpus=gpus, memory_bytes=memory_bytes, unsafe=unsafe))

    def settle(self) -> None:
        """Waits until those that were started are up, so that they take no time from a measurement."""
        for spare in list(self._waiting):
            try:
                spare.wait_ready()
            except ContestantGone:
                self._waiting.remove(spare)

    def close(self) -> None:
        """Ends all of them."""
        while self._waiting:
            self._waiting.pop().close()


def _none(request: BuildRequest) -> Build:
    return Build(key="", state=BuildState.UNAVAILABLE, name=request.name, log="nothing is loaded yet")
