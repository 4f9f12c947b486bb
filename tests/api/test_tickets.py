"""Tickets, deadlines and storing: a candidate ends alone, and what ended with a verdict is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernelproof import Submission, Ticket, Verifier
from kernelproof.api import Result
from kernelproof.db.store import Store, open_store
from kernelproof.errors import MachineError, UsageError
from kernelproof.verifier.engine import engine
from tests.api.processes import compilers
from tests.cli import material
from tests.postgres import PostgresServer

ENDLESS = 100_000_000
NOTHING = Submission("no program", "relu")


def endless(name: str, deadline_s: float | None = None) -> Submission:
    return Submission(material.slow_to_compile(name, ENDLESS), "relu", name, deadline_s)


def kept(store: Store, run: str) -> dict[int, str]:
    """The attempts of a run, with how they ended."""
    (number,) = store.runs_named(run)
    return {state.id: str(state.status) for state in store.attempts_of(number).values()}


@dataclass(frozen=True)
class Mine:
    """A record of the caller's own, with no deadline."""

    source: str | Path
    problem: str


def test_one_that_is_no_use_fails_alone(place: dict[str, Any], tmp_path: Path) -> None:
    given = [
        Mine("no program", "rellu"),
        Mine(tmp_path / "gone.py", "relu"),
        Submission("no program", "relu", deadline_s=float("nan")),
        Mine("no program", "relu"),
    ]

    async def main() -> list[Result[Any]]:
        async with Verifier(**place, in_flight=1) as verifier:
            return [result async for result in verifier.verify_many(given)]

    results = {id(result.candidate): result for result in anyio.run(main)}
    unknown, gone, late, last = (results[id(candidate)] for candidate in given)
    assert (unknown.state, gone.state, late.state, last.state) == ("failed", "failed", "failed", "done")
    assert "did you mean relu" in str(unknown.error) and "gone.py" in str(gone.error)
    assert "deadline_s is a number of seconds" in str(late.error)
    assert unknown.verification is None and last.error is None
    assert last.verification is not None and last.verification.status == "no_code"


def test_a_ticket_is_awaited_by_whoever_likes(place: dict[str, Any]) -> None:
    async def main() -> None:
        async with Verifier(**place) as verifier:
            tickets = [verifier.submit(NOTHING) for _ in range(40)]
            first, *_ = results = await asyncio.gather(*tickets)
            assert [result.state for result in results] == ["done"] * 40
            assert await tickets[0] is first and tickets[0].done and first.candidate is NOTHING
            assert not tickets[0].cancel()
            with pytest.raises(UsageError, match="did you mean relu"):
                await verifier.verify("no program", "rellu")

    asyncio.run(main())


def test_what_is_cancelled_before_it_began_never_begins(place: dict[str, Any]) -> None:
    async def main() -> None:
        async with Verifier(**place) as verifier:
            ticket = verifier.submit(endless("never"))
            assert ticket.cancel() and not ticket.cancel()
            result = await ticket
            assert (result.state, result.verification) == ("cancelled", None)
            late = [r async for r in verifier.verify_many([endless("late", 1e-9)])]
            assert [(r.state, r.error) for r in late] == [("expired", "not done by its deadline of 1e-09 s")]
            left = verifier.submit(endless("left"))
        with pytest.raises(UsageError, match="closed before this candidate was done"):
            await left

    anyio.run(main)


def test_every_verification_is_kept_as_an_attempt(place: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"

    async def main() -> list[Result[Submission]]:
        async with Verifier(**place, store=path, run="mine") as verifier:
            given = [NOTHING, Submission("", "relu"), Submission("x", "rellu")]
            await verifier.verify("again no program", "relu")
            return [result async for result in verifier.verify_many(given)]

    results = anyio.run(main)
    numbers = {result.attempt_id for result in results if result.state == "done"}
    with open_store(path, create=False) as store:
        found = kept(store, "mine")
        assert len(found) == 3 and numbers < set(found)
        answers = [store.load_attempt(number).response for number in numbers]
        assert {answer.text for answer in answers if answer is not None} == {"no program", ""}
    assert {result.attempt_id for result in results if result.state == "failed"} == {None}


def test_a_store_on_a_server(place: dict[str, Any], postgres: PostgresServer) -> None:
    url = postgres.address(postgres.made()).url

    async def main() -> Result[Submission]:
        async with Verifier(**place, store=url, run="served") as verifier:
            return await verifier.submit(NOTHING)

    result = anyio.run(main)
    assert result.attempt_id is not None


def test_a_store_that_cannot_be_used_is_told_at_once(place: dict[str, Any], tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_text("no database" * 100)

    async def main() -> None:
        async with Verifier(**place, store=broken):
            pass

    with pytest.raises(MachineError, match=r"broken\.sqlite"):
        anyio.run(main)


async def until(met: Any) -> None:
    with anyio.fail_after(120):
        while not met():
            await anyio.sleep(0.02)


@contextmanager
def early(patch: pytest.MonkeyPatch) -> Iterator[None]:
    with patch.context() as within:
        within.setattr(engine, "STOPPED_SECONDS", 0.0)
        yield


HANGS = material.candidate("hangs", "for (volatile int forever = 1; forever;) {}")


@pytest.mark.ci
def test_candidates_end_alone_wherever_they_are(
    place: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.sqlite"

    async def compiling(verifier: Verifier, name: str) -> Ticket[Submission]:
        ticket = verifier.submit(endless(name))
        await until(compilers)
        return ticket

    async def main() -> Result[Submission]:
        async with Verifier(**place, store=path, run="mine") as verifier:
            # A compiler under way ends with its candidate: cancelled, by its task, by its deadline.
            cancelled = await compiling(verifier, "cancelled")
            assert cancelled.cancel()
            assert (await cancelled).state == "cancelled"
            await until(lambda: not compilers())

            forgotten = await compiling(verifier, "forgotten")
            with anyio.move_on_after(0.05):
                await forgotten
            assert (await forgotten).state == "cancelled"
            await until(lambda: not compilers())

            late = await verifier.submit(endless("late", 1.5))
            assert late.state == "expired" and late.verification is None
            await until(lambda: not compilers())

            with anyio.move_on_after(1.5):
                await verifier.verify(endless("single").source, "relu")
            await until(lambda: not compilers())

            # A referee with one that hangs is ended; the next candidate gets another referee.
            with early(monkeypatch):
                # A call of it may take 10 s: the deadline is over before that, however fast it was built.
                hung = verifier.submit(Submission(HANGS, "relu", deadline_s=8))
                assert (await hung).state == "expired"
                right = await verifier.submit(Submission(material.right(), "relu"))
            return right

    right = anyio.run(main)
    assert right.verification is not None and right.verification.status == "correct"
    with open_store(path, create=False) as store:
        assert kept(store, "mine") == {right.attempt_id: "correct"}
