"""`verify` for one candidate, and `Verifier` for many."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from kernelproof.api.rules import Rules, text_of
from kernelproof.engine.engine import Engine, require_device
from kernelproof.errors import UsageError
from kernelproof.runs.single import verdict_on
from kernelproof.runs.stream import Stream, places, verify_persistently
from kernelproof.types import Problem, Verification


class CandidateLike(Protocol):
    """A candidate for `verify_many`: a `Submission`, or any record of the caller's with these two."""

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


@dataclass(frozen=True)
class Result(Generic[C]):
    """One candidate and its verification."""

    candidate: C
    """The very object that was handed in."""
    verification: Verification


class Results(Generic[C]):
    """The results of one `verify_many`, as they come: an async iterator."""

    def __init__(self, stream: Stream[C, Verification]) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[Result[C]]:
        return self

    async def __anext__(self) -> Result[C]:
        """The next result. Raises UsageError, MachineError and what drawing a candidate raised."""
        candidate, verification = await anext(self._stream)
        return Result(candidate, verification)

    async def aclose(self) -> None:
        """Draws no more candidates and gives no more results, as leaving the Verifier does.

        Candidates in the referee's or a compiler's hands are judged to their end, and that is thrown away.
        """
        self._stream.close()


class Verifier:
    """Verifies any number of candidates on this machine with one engine. Stores nothing.

        async with Verifier(backend="cpp", rigor="quick") as verifier:
            async for result in verifier.verify_many(candidates):
                result.candidate, result.verification

    Leaving the block, however it is left, ends everything that was started for it.
    """

    def __init__(
        self,
        *,
        suite: str | Path | None = None,
        unsafe: bool = False,
        cache: str | Path | None = None,
        in_flight: int | None = None,
        **settings: Any,
    ) -> None:
        """`in_flight`: most candidates of one `verify_many` that are drawn and not yet taken as results; by
        default 16 and one for each core. The rest is as in `verify`. Raises UsageError for bad settings.
        """
        if in_flight is not None and in_flight < 1:
            raise UsageError(f"in_flight is a number of candidates, 1 or more, not {in_flight}")
        self._rules = Rules(suite, unsafe, settings)
        self._cache = Path(cache) if cache is not None else None
        self._in_flight = in_flight or places()
        self._threads = anyio.CapacityLimiter(self._in_flight)
        self._open: tuple[Engine, TaskGroup] | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Raises MachineError for what this machine lacks."""
        if self._open is not None:
            raise UsageError("this Verifier is open already; make another one")
        engine = await anyio.to_thread.run_sync(self._started)
        self._stack.push_async_callback(_closed, engine)
        self._open = engine, await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._open is not None:
            # Cancelled before the engine is closed: a verification that the closing ends is no failure.
            self._open[1].cancel_scope.cancel()
        self._open = None
        try:
            return bool(await self._stack.__aexit__(kind, error, trace))
        except BaseExceptionGroup:
            if error is None:
                raise
            return False  # the group holds what the block raised, which goes on by itself

    def verify_many(self, candidates: Iterable[C] | AsyncIterable[C]) -> Results[C]:
        """The verification of each candidate, in the order in which they are done.

        `candidates` is drawn from in the event loop, and only as fast as results are taken; nothing is drawn
        before the first is asked for. Each is verified by itself, the same source twice as well. A candidate
        that is lost to infrastructure is tried again, at most twice. The iterator raises UsageError and
        MachineError, and what `candidates` raises; that ends it. Raises UsageError outside of `async with`.
        """
        engine, group = self._opened()
        return Results(Stream(candidates, partial(self._judged, engine), group, self._in_flight))

    async def verify(self, source: str | Path, problem: str | Path | Problem) -> Verification:
        """The verification of one candidate. Raises UsageError and MachineError."""
        engine, _ = self._opened()
        candidate = Submission(source, problem)
        return await anyio.to_thread.run_sync(
            self._judged, engine, candidate, limiter=self._threads, abandon_on_cancel=True
        )

    def _opened(self) -> tuple[Engine, TaskGroup]:
        if self._open is None:
            raise UsageError("this Verifier is not open; use it within: async with Verifier(...) as verifier")
        return self._open

    def _started(self) -> Engine:
        require_device(self._rules.settings.backend)
        return Engine(self._cache, unsafe=self._rules.settings.unsafe, many=True)

    def _judged(self, engine: Engine, candidate: CandidateLike) -> Verification:
        problem = self._rules.problem(candidate.problem)
        settings = self._rules.settings_for(problem)
        return verdict_on(text_of(candidate.source), problem, settings, engine, verify_persistently)


def verify(
    source: str | Path,
    problem: str | Path | Problem,
    *,
    suite: str | Path | None = None,
    unsafe: bool = False,
    cache: str | Path | None = None,
    **settings: Any,
) -> Verification:
    """Verifies one candidate on this machine and returns everything that was seen. Stores nothing.

    `source` is the candidate's text, or the path of a file that holds it; a model's answer will do, with its
    prose and fences. `problem` is an id or name
    (`level1/2`, `softmax`) of the packaged problems or of `suite`, a path of a problem file, or a Problem.
    `settings` are the fields of `VerifySettings`: `backend`, `size`, `trials`, `measure`,
    `measure_seconds` ...; `backend` is cuda where there is a GPU, else cpp; `size` is full on a GPU,
    and small on a CPU where the problem has a small one.

        verification = verify(Path("relu.py"), "level1/1", backend="cpp", size="small")
        verification.status, verification.measurement.speedup

    What the candidate does wrong is `verification.status`, `no_code` where the text holds no program. Raises
    UsageError for what the caller must change, MachineError for what this machine lacks.
    """
    rules = Rules(suite, unsafe, settings)
    found = rules.problem(problem)
    text = text_of(source)
    chosen = rules.settings_for(found)
    require_device(chosen.backend)
    with Engine(Path(cache) if cache is not None else None, unsafe=unsafe) as engine:
        return verdict_on(text, found, chosen, engine)


async def _closed(engine: Engine) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(engine.close, limiter=anyio.CapacityLimiter(1))
