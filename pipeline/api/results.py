"""The records that a `Verifier` takes and gives back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

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
