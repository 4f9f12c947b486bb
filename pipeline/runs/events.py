"""What happens to the attempts of a batch, as it happens. The display and `kernelproof status` show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kernelproof.types import AttemptKey, Response, Status, Verification


class Phase(StrEnum):
    """Where an attempt is."""

    ELSEWHERE = "elsewhere"
    """Another command is at work on the same question; this one waits for what comes of it."""
    ASKING = "asking"
    """The question waits for a free place at the model's server."""
    SENT = "sent"
    """The server has the question; no token came yet."""
    ANSWERING = "answering"
    """Tokens come."""
    WAITING = "waiting"
    """The server was busy or failed; the question is sent again later. `note` says why."""
    BATCHED = "batched"
    """The question is in a batch: collected, at the server, or answered and not yet read. `batch` and `note`
    say which and how far it is."""
    ANSWERED = "answered"
    """The answer is stored."""
    JUDGING = "judging"
    """The candidate is with the engine; `note` is the engine's stage: queued, building, timing ..."""
    ENDED = "ended"
    """It ended with `status`."""
    OVER = "over"
    """The sample is over: no attempt of it follows in this command. `note` says why where its strategy, or
    `good_enough`, ended it before the turns were used up."""


@dataclass(frozen=True)
class Event:
    """Something that happened to one attempt."""

    model: str
    key: AttemptKey
    phase: Phase
    note: str = ""
    batch: str = ""
    """BATCHED: the server's name of the batch; empty as long as it is collected."""
    tokens: int = 0
    """ANSWERING: tokens that came so far."""
    attempt_id: int | None = None
    response: Response | None = None
    """ANSWERED: the answer, with usage and cost."""
    reused: bool = False
    """ANSWERED: the answer was stored already; nothing was asked or paid."""
    status: Status | None = None
    """ENDED: how. `note` says why, where an answer was cut off or there was none."""
    verification: Verification | None = None
    """ENDED: the verification, where there was one."""
    confirmed: bool = False
    """ENDED: the verification is the second one, of the best attempt of a sample that raced."""
    kept: bool = False
    """ENDED: it had ended so before this command; nothing was done."""


OnEvent = Callable[[Event], None]
"""Called in the event loop and in threads, one event at a time for each attempt."""
