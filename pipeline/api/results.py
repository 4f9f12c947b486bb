"""The records that a `Verifier` takes and gives back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

import anyio

from kernelproof.errors import UsageError
from kernelproof.runs.stream import Stream
from kernelproof.types import Problem, Verification

YEAR_S = 365 * 86400.0

State = Literal["done", "failed", "expired", "cancelled"]
"""How a candidate ended: with a verification, by a mistake of its caller's, its deadline, or `cancel`."""


class CandidateLike(Protocol):
    """A candidate: a `Submission`, or any record of the caller's with these two, and maybe `deadline_s`."""

    @property
    def source(self) -> str | Path:
        """A program's text or an answer that holds one, or the path of a file with either."""

    @property
    def problem(self) -> str | Path | Problem:
        """An id or name, the path of a problem file, or a Problem."""


C = TypeVar("C", bound=CandidateLike)


@dataclass(frozen=True)
class Submission:
    """A candidate to verify."""

    source: str | Path
    """A program's text or an answer that holds one, or the path of a file with either."""
    problem: str | Path | Problem
    """An id or name, the path of a problem file, or a Problem."""
    id: str = ""
    """The caller's name for it."""
    deadline_s: float | None = None
    """Seconds from its submission, or from when it is drawn, to its end; None: the Verifier's own."""


@dataclass(frozen=True)
class Result(Generic[C]):
    """One candidate, and either its verification or the reason why there is none."""

    candidate: C
    """The very object that was handed in."""
    state: State
    verification: Verification | None = None
    """There where the state is `done`, and only there."""
    error: str | None = None
    """Why there is no verification: `failed` (what the caller must change), `expired` or `cancelled`."""
    attempt_id: int | None = None
    """Its number in the store: `kernelproof show NUMBER`. None without a store."""


class Results(Generic[C]):
    """The results of one `verify_many`, as they come: an async iterator."""

    def __init__(self, stream: Stream[C, Result[C]]) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[Result[C]]:
        return self

    async def __anext__(self) -> Result[C]:
        """The next result. Raises MachineError and what drawing a candidate raised."""
        _, result = await anext(self._stream)
        return result

    async def aclose(self) -> None:
        """Draws no more candidates and gives no more results. Candidates without a result are ended, as by
        `Ticket.cancel`."""
        self._stream.close()


def deadline_of(candidate: object, otherwise: float | None) -> float | None:
    """The seconds that a candidate has. Raises UsageError for what is no number of seconds."""
    named = getattr(candidate, "deadline_s", None)
    return otherwise if named is None else seconds(named)


def seconds(value: object) -> float:
    """A deadline as a number. Raises UsageError unless it is more than 0, and a year at most."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= YEAR_S:
        return float(value)
    raise UsageError(f"deadline_s is a number of seconds, more than 0 and at most a year, not {value!r:.40}")


class Ticket(Generic[C]):
    """What `Verifier.submit` returns. Belongs to the event loop of its Verifier.

        ticket = verifier.submit(candidate)
        result = await ticket

    It may be awaited several times, by several tasks. Cancelling a task that awaits it cancels the candidate.
    """

    def __init__(self, candidate: C) -> None:
        self.candidate = candidate
        self._scope = anyio.CancelScope()
        self._over = anyio.Event()
        self._result: Result[C] | None = None
        self._error: Exception | None = None

    @property
    def done(self) -> bool:
        """Whether `await` returns at once."""
        return self._over.is_set()

    def cancel(self) -> bool:
        """Ends the candidate; its state is then `cancelled`. False when it was over before.

        One that waits or is compiled ends at once. One that is judged gives its place free within 20 seconds.
        """
        if self.done or self._scope.cancel_called:
            return False
        self._scope.cancel()
        return True

    def __await__(self) -> Generator[Any, None, Result[C]]:
        """The result. Raises MachineError, and UsageError when the Verifier was closed before."""
        return self._waited().__await__()

    async def _waited(self) -> Result[C]:
        try:
            await self._over.wait()
        except anyio.get_cancelled_exc_class():
            self.cancel()
            raise
        if self._result is None:
            raise self._error or UsageError("the Verifier was closed before this candidate was done")
        return self._result

    async def follow(self, judge: Callable[[C], Awaitable[Result[C]]]) -> None:
        """Has the candidate judged. For the Verifier; called once."""
        try:
            with self._scope:
                self._result = await judge(self.candidate)
            if self._result is None:
                self._result = Result(self.candidate, "cancelled", error="cancelled by its caller")
        except Exception as error:
            self._error = error
        finally:
            self._over.set()
