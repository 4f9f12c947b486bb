"""`verify` for one candidate, and `Verifier` for many."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from kernelproof.api.judging import Judging, Rules, text_of
from kernelproof.api.results import (
    C,
    CandidateLike,
    Result,
    Results,
    Submission,
    Ticket,
    deadline_of,
    seconds,
)
from kernelproof.errors import UsageError
from kernelproof.jobs import Job, Judge
from kernelproof.jobs.judge import places, without_program
from kernelproof.runs.stream import Stream
from kernelproof.types import Problem, Verification
from kernelproof.verifier.engine.engine import Engine, require_device
from kernelproof.verifier.engine.stop import Stop
from kernelproof.workspace import database_place


class Verifier:
    """Verifies any number of candidates on this machine with one engine.

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
        deadline_s: float | None = None,
        store: str | Path | None = None,
        run: str | None = None,
        **settings: Any,
    ) -> None:
        """`in_flight`: most candidates of one `verify_many` that are drawn and not yet taken as results; by
        default 16 and one for each core. `deadline_s`: seconds for a candidate that names none of its own.
        `store`: a SQLite file or a server's address (`postgresql+psycopg://...`), in which every verification
        is kept as an attempt of the run with the name `run`. The rest is as in `verify`. Raises UsageError
        for bad settings.
        """
        if in_flight is not None and in_flight < 1:
            raise UsageError(f"in_flight is a number of candidates, 1 or more, not {in_flight}")
        if run is not None and store is None:
            raise UsageError(f"run={run!r} names what is stored; give store, too")
        self._rules = Rules(suite, unsafe, settings)
        self._deadline_s = None if deadline_s is None else seconds(deadline_s)
        self._place = None if store is None else database_place(str(store))
        self._label, self._cache = run, Path(cache) if cache is not None else None
        self._in_flight = in_flight or places()
        self._threads = anyio.CapacityLimiter(self._in_flight)
        self._open: tuple[Judging, TaskGroup] | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Raises MachineError for what this machine lacks, or where the store cannot be used."""
        if self._open is not None:
            raise UsageError("this Verifier is open already; make another one")
        judging = await anyio.to_thread.run_sync(Judging, self._rules, self._cache, self._place, self._label)
        self._stack.push_async_callback(_closed, judging)
        self._open = judging, await self._stack.enter_async_context(anyio.create_task_group())
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
        """The result of each candidate, in the order in which they are done.

        `candidates` is drawn from in the event loop, and only as fast as results are taken; nothing is drawn
        before the first is asked for. Each is verified by itself, the same source twice as well. A candidate
        that is lost to infrastructure is tried again, at most twice. One that is no use (an unknown problem,
        a file that is gone) or is not done by its deadline has a result that says so. The iterator raises
        MachineError, and what `candidates` raises; that ends it. Raises UsageError outside of `async with`.
        """
        judging, group = self._opened()
        return Results(Stream(candidates, partial(self._ended, judging), group, self._in_flight))

    def submit(self, candidate: C) -> Ticket[C]:
        """Begins with a candidate; `await` the ticket for its result. Any number may be submitted; as many as
        `in_flight` are worked on, and the others wait. Raises UsageError outside of `async with`."""
        judging, group = self._opened()
        ticket = Ticket(candidate)
        group.start_soon(ticket.follow, partial(self._ended, judging))
        return ticket

    async def verify(self, source: str | Path, problem: str | Path | Problem) -> Verification:
        """The verification of one candidate, without a deadline. Cancelling the task that awaits it ends it.

        Raises UsageError and MachineError.
        """
        judging, _ = self._opened()
        verification, _ = await self._judged(judging, Submission(source, problem))
        return verification

    def _opened(self) -> tuple[Judging, TaskGroup]:
        if self._open is None:
            raise UsageError("this Verifier is not open; use it within: async with Verifier(...) as verifier")
        return self._open

    async def _ended(self, judging: Judging, candidate: C) -> Result[C]:
        try:
            most = deadline_of(candidate, self._deadline_s)
            with anyio.move_on_after(most):
                verification, attempt = await self._judged(judging, candidate)
                return Result(candidate, "done", verification, attempt_id=attempt)
        except UsageError as error:
            return Result(candidate, "failed", error=str(error))
        return Result(candidate, "expired", error=f"not done by its deadline of {most:g} s")

    async def _judged(self, judging: Judging, candidate: CandidateLike) -> tuple[Verification, int | None]:
        stop = Stop()
        try:
            return await anyio.to_thread.run_sync(
                judging.judge, candidate, stop, limiter=self._threads, abandon_on_cancel=True
            )
        finally:
            stop.ask()


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

    A candidate's mistake is `verification.status`, `no_code` where the text holds no program. Raises
    UsageError for what the caller must change, MachineError for what this machine lacks.
    """
    rules = Rules(suite, unsafe, settings)
    found = rules.problem(problem)
    text = text_of(source)
    chosen = rules.settings_for(found)
    require_device(chosen.backend)
    with Engine(Path(cache) if cache is not None else None, unsafe=unsafe) as engine:
        job = Job.of_text(text, found, chosen)
        return Judge(engine).judge(job).verification or without_program(job)


async def _closed(judging: Judging) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(judging.close, limiter=anyio.CapacityLimiter(1))
