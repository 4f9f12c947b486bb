"""Many candidates given as files: each result is kept as soon as it is there, and a candidate with a kept
result is not judged again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio
import anyio.to_thread

from kernelproof.db.store import Store
from kernelproof.db.views import Content
from kernelproof.engine.engine import Engine
from kernelproof.hashing import sha256_text
from kernelproof.runs.candidates import Given
from kernelproof.runs.ending import Listener, Stopper, first_error
from kernelproof.runs.single import Verified, run_of, verify_given
from kernelproof.runs.stages import RETRIED
from kernelproof.runs.stream import Stream, in_threads, places, verify_persistently
from kernelproof.types import VerifySettings


@dataclass(frozen=True)
class Done:
    """A candidate and what came of it."""

    given: Given
    verified: Verified
    kept: bool
    """True when it was taken from the store, not verified now."""


@dataclass(frozen=True)
class ManyDone:
    """How all of them ended."""

    done: tuple[Done, ...]
    missing: int
    """Candidates that an interruption left undone."""


async def verify_all(
    candidates: Sequence[Given],
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

    def work(given: Given) -> Verified:
        return verify_given(given, settings, engine, store=store, label=label, verify=verify_persistently)

    def note(found: Done) -> None:
        done.append(found)
        listener.hear(found)

    done: list[Done] = []
    kept = _Kept(store, settings, label) if store is not None and not again else None
    stopper, listener = Stopper(), Listener(on_done, unread)
    try:
        async with anyio.create_task_group() as group:
            stopper.watch(group)
            group.start_soon(listener.watch, group)
            rest = []
            for given in candidates:
                before = await anyio.to_thread.run_sync(kept.take, given) if kept is not None else None
                if before is not None:
                    note(Done(given, before, True))
                else:
                    rest.append(given)
            async for given, verified in Stream(rest, in_threads(work, places()), group, places()):
                note(Done(given, verified, False))
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        raise first_error(errors) from None
    finally:
        engine.close()  # ends what cancelled tasks left running in their threads
    kept_words = "what was verified is stored" if store is not None else "--no-store keeps nothing of this"
    listener.raise_if_gone(kept_words)
    return ManyDone(tuple(done), len(candidates) - len(done))


class _Kept:
    """What the store holds of a run, each attempt to be taken once, the newest first."""

    def __init__(self, store: Store, settings: VerifySettings, label: str | None) -> None:
        self._store = store
        self._ids = store.attempts_by_content(store.begin_run(run_of(settings, label)))

    def take(self, given: Given) -> Verified | None:
        """How this candidate ended before; None when it did not, or not finally."""
        ids = self._ids.get(_content(given), [])
        while ids:
            if (ended := _ended(self._store, ids.pop())) is not None:
                return ended
        return None


def kept_before(
    store: Store, given: Given, settings: VerifySettings, label: str | None = None
) -> Verified | None:
    """The newest final result of the same content, under these settings and this label.

    None when there is none. Unlike in `verify_all`, equal contents share one result.
    """
    content, run_id = _content(given), store.run_id(run_of(settings, label))
    ids = store.attempts_by_content(run_id, content.text_sha256) if run_id is not None else {}
    ended = (_ended(store, number) for number in reversed(ids.get(content, [])))
    return next((each for each in ended if each is not None), None)


def _ended(store: Store, attempt_id: int) -> Verified | None:
    """The final result of an attempt; None when it is to be judged again."""
    attempt = store.load_attempt(attempt_id)
    verification = attempt.verdict.verification if attempt.verdict else None
    judged = verification is not None or attempt.source is None
    if judged and attempt.extraction is not None and attempt.status not in (None, *RETRIED):
        return Verified(attempt.extraction, attempt.status, verification, attempt.id)
    return None


def _content(given: Given) -> Content:
    text, candidate = given.response.text, given.extraction.candidate
    return Content(
        problem_id=given.problem.id,
        problem_sha256=given.problem.sha256,
        text_sha256=None if text is None else sha256_text(text),
        source_sha256=candidate.sha256 if candidate else None,
        none=given.extraction.status,
    )
