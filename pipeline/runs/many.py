"""Many candidates from files: each result is kept as soon as it is there, and a candidate with a kept
result is not judged again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelproof.db.store import Store
from kernelproof.jobs import Job, Judge, NewAttempt, Purpose, Verdict
from kernelproof.jobs.job import files_run
from kernelproof.jobs.judge import places
from kernelproof.runs.candidates import CandidateInput
from kernelproof.runs.shutdown import Shutdown
from kernelproof.runs.stream import Stream, in_threads
from kernelproof.types import VerifySettings
from kernelproof.verifier.engine.engine import Engine


@dataclass(frozen=True)
class Done:
    """A candidate and what came of it."""

    input: CandidateInput
    verdict: Verdict


@dataclass(frozen=True)
class ManyDone:
    """How all of them ended."""

    done: tuple[Done, ...]
    missing: int
    """Candidates that an interruption left undone."""


async def verify_all(
    candidates: Sequence[CandidateInput],
    settings: VerifySettings,
    engine: Engine,
    *,
    store: Store | None = None,
    label: str | None = None,
    again: bool = False,
    on_done: Callable[[Done], None] = lambda _: None,
    unread: Callable[[], bool] = lambda: False,
) -> ManyDone:
    """Verifies candidates to the end, or to a SIGINT or SIGTERM; results stored by then stay.

    With a store, what is there with a final status for the same content, problem, settings and label is taken
    from it, unless `again`. The same content twice is two candidates and two attempts. Raises what
    `Engine.verify` raises, and OutputClosed when `on_done` or `unread` says that nobody reads any more.
    """

    def work(candidate: CandidateInput) -> Verdict:
        keep = NewAttempt(run, candidate.response, shared=False) if store is not None else None
        return judge.judge(Job(candidate.problem, candidate.extraction, settings, keep, purpose))

    def note(found: Done) -> None:
        done.append(found)
        shutdown.hear(found)

    done: list[Done] = []
    judge, run = Judge(engine, store), files_run(settings, label)
    purpose = Purpose.MEASUREMENT if again else Purpose.VERDICT
    shutdown = Shutdown(on_done, unread)
    async with shutdown.work(engine) as group:
        async for candidate, verdict in Stream(candidates, in_threads(work, places()), group, places()):
            note(Done(candidate, verdict))
    kept_words = "what was verified is stored" if store is not None else "--no-store keeps nothing of this"
    shutdown.raise_if_gone(kept_words)
    return ManyDone(tuple(done), len(candidates) - len(done))
