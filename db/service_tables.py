"""The tables of the evaluation service: its callers, and the queue of what they sent."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import count, created_at, json, number, symbol, text_key, truth, words
from kernelproof.db.types import Whole, Words


class Caller(Base):
    """Callers of the evaluation service, each with a token. The token itself is not stored."""

    __tablename__ = "callers"

    name: Mapped[str] = mapped_column(Words, primary_key=True, comment="The name given by the operator.")
    token_sha256: Mapped[str] = symbol("SHA-256 of the token, which was shown once.")
    quota: Mapped[int | None] = count("Most evaluations of the caller that may wait or run; NULL: no limit.")
    created: Mapped[str] = created_at()
    revoked: Mapped[str | None] = created_at("When the token stopped to be accepted; NULL: it is accepted.")


class Evaluation(Base):
    """The queue of the evaluation service: one row for each candidate that was sent. A result is an attempt.
    Rows change until they have ended, and stay afterwards."""

    __tablename__ = "evaluations"
    __table_args__ = (
        UniqueConstraint("caller", "idempotency_key", name="uq_evaluations_idempotency"),
        Index("ix_evaluations_queue", "state", "priority", "submitted"),
        Index("ix_evaluations_request", "request_sha256", "state"),
    )

    id: Mapped[str] = mapped_column(Words, primary_key=True, comment="The id that the caller knows.")
    caller: Mapped[str] = words("Name of the caller; `local` where no token is asked for.")
    idempotency_key: Mapped[str | None] = words("The caller's key: the same one gets the same evaluation.")
    request_sha256: Mapped[str] = symbol("SHA-256 of problem, text, settings, and the verifier's version.")
    label: Mapped[str | None] = words("Name of the run that the attempt is stored under.")
    problem: Mapped[int] = mapped_column(Whole, ForeignKey("problems.id"), comment="The problem.")
    text_sha256: Mapped[str] = text_key("The text that was sent: a program, or an answer that holds one.")
    settings: Mapped[dict[str, Any]] = json("The `VerifySettings`, resolved.")
    backend: Mapped[str] = symbol("Of these: a worker takes what its machine can run.")
    priority: Mapped[int] = count("Greater ones are taken first.")
    submitted: Mapped[float] = number("Unix time in seconds, by the database's clock.")
    deadline: Mapped[float | None] = number("Unix time after which it is not begun any more.")
    state: Mapped[str] = symbol("`queued`, `running`, `done`, `failed`, `expired` or `cancelled`.")
    token: Mapped[int] = count(
        "Fencing token: it counts the takings. A verdict with an older one is refused."
    )
    owner: Mapped[str | None] = words("Machine and process of the worker that has it.")
    leased: Mapped[float | None] = number("Unix time until which the worker has it, unless it renews that.")
    started: Mapped[float | None] = number("Unix time when the last worker took it.")
    finished: Mapped[float | None] = number("Unix time when it ended.")
    attempt_id: Mapped[int | None] = mapped_column(Whole, ForeignKey("attempts.id"), comment="The result.")
    reused: Mapped[bool] = truth("True when the result of equal work was taken.")
    error: Mapped[str | None] = words("Why there is no result, where it failed or expired.")
    infrastructure: Mapped[bool] = truth("True where `error` is a failure of ours.")
    late_verdicts: Mapped[int] = count("Verdicts that came after the lease was lost, and were refused.")
    bad_gpus: Mapped[int] = count("GPUs that were set aside while their judge had it.")


class Worker(Base):
    """Workers of the evaluation service, and their last sign of life."""

    __tablename__ = "workers"

    owner: Mapped[str] = mapped_column(Words, primary_key=True, comment="Machine and process.")
    backend: Mapped[str] = words("Backends that it takes, separated by commas.")
    device: Mapped[str] = words("The device that it measures on.")
    places: Mapped[int] = count("Evaluations that it has at once.")
    running: Mapped[int] = count("Evaluations that it has.")
    done: Mapped[int] = count("Evaluations that it ended.")
    renewed: Mapped[float] = number("Unix time of its last sign of life, by the database's clock.")
    created: Mapped[str] = created_at()
    ended: Mapped[str | None] = created_at("When it ended by itself.")
    gpu: Mapped[str | None] = words("UUID of the one GPU that it measures on.")
    waits: Mapped[str | None] = words("Why it takes no evaluations now; NULL: it takes them.")
