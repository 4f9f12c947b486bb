"""The tables of the evaluation service (its callers, queue, workers, GPUs), and the list of all tables."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db import models
from kernelproof.db.columns import (
    Int64,
    any_text,
    boolean,
    count,
    created_at,
    digest,
    json,
    keyword,
    number,
    text_key,
)
from kernelproof.db.models import Base


class Caller(Base):
    """Callers of the evaluation service, each with a token. The token itself is not stored."""

    __tablename__ = "callers"

    name: Mapped[str] = any_text("The name given by the operator.", primary_key=True)
    token_sha256: Mapped[str] = keyword("SHA-256 of the token, which was shown once.")
    quota: Mapped[int | None] = count("Most evaluations of the caller that may wait or run; NULL: no limit.")
    created: Mapped[str] = created_at()
    revoked: Mapped[str | None] = created_at("When the token was revoked; NULL: it is accepted.")


def _partial(name: str, condition: str, *columns: str) -> Index:
    """An index of few rows of `evaluations`."""
    where = text(condition)
    return Index(f"ix_evaluations_{name}", *columns, sqlite_where=where, postgresql_where=where)


class Evaluation(Base):
    """The queue of the evaluation service: one row for each candidate that was sent. A result is an attempt.
    Rows change until they have ended, and stay afterwards."""

    __tablename__ = "evaluations"
    __table_args__ = (
        UniqueConstraint("caller", "idempotency_key", name="uq_evaluations_idempotency"),
        Index("ix_evaluations_order", "state", "backend", "priority", "submitted", "id"),
        Index("ix_evaluations_caller", "state", "caller"),
        Index("ix_evaluations_finished", "state", "finished"),
        _partial("deadline", "deadline IS NOT NULL", "state", "deadline"),
        _partial("held", "leased IS NOT NULL", "owner", "leased", "state"),
        _partial("late", "late_verdicts > 0 OR late_builds > 0", "late_verdicts", "late_builds"),
        Index("ix_evaluations_request", "request_sha256", "state"),
    )

    id: Mapped[str] = any_text("The id that the caller knows.", primary_key=True)
    caller: Mapped[str] = any_text("Name of the caller; `local` where no token is asked for.")
    idempotency_key: Mapped[str | None] = any_text("The caller's key: the same one gets the same evaluation.")
    request_sha256: Mapped[str] = keyword("SHA-256 of problem, text, settings, and the verifier's version.")
    label: Mapped[str | None] = any_text("Name of the run that the attempt is stored under.")
    problem: Mapped[int] = mapped_column(Int64, ForeignKey("problems.id"), comment="The problem.")
    text_sha256: Mapped[str] = text_key("The text that was sent: a program, or an answer that holds one.")
    settings: Mapped[dict[str, Any]] = json("The `VerifySettings`, resolved.")
    backend: Mapped[str] = keyword("The backend in `settings`: workers take what their machine can run.")
    priority: Mapped[int] = count("Evaluations of greater priority are taken first.")
    submitted: Mapped[float] = number("Unix time in seconds, by the database's clock.")
    deadline: Mapped[float | None] = number("Unix time after which it is not begun any more; NULL: none.")
    state: Mapped[str] = keyword(
        "`queued`, `building`, `built`, `running`, `done`, `failed`, `expired` or `cancelled`."
    )
    token: Mapped[int] = count("Fencing token: how often it was taken. What has an older one is refused.")
    owner: Mapped[str | None] = any_text("Machine and process of the worker or builder that has it.")
    leased: Mapped[float | None] = number("Unix time at which the owner's lease ends, unless it is renewed.")
    started: Mapped[float | None] = number("Unix time when the last worker took it.")
    finished: Mapped[float | None] = number("Unix time when it ended.")
    attempt_id: Mapped[int | None] = mapped_column(Int64, ForeignKey("attempts.id"), comment="The result.")
    reused: Mapped[bool] = boolean("True when it got the result of an equal evaluation, and nothing was run.")
    error: Mapped[str | None] = any_text("Why there is no result, for a failed or expired evaluation.")
    infrastructure: Mapped[bool] = boolean("True where `error` is the service's failure, not the request's.")
    late_verdicts: Mapped[int] = count("Verdicts that came after the lease was lost, and were refused.")
    bad_gpus: Mapped[int] = count("Number of GPUs that were set aside while their judge had this evaluation.")
    artefact: Mapped[str | None] = digest("Key of the artefact that a builder published; NULL: none.")
    built: Mapped[float | None] = number("Unix time when a builder had built it.")
    late_builds: Mapped[int] = count("Number of builds that came after the lease was lost, and were refused.")
    losses: Mapped[int] = count("Leases on it that were lost: an owner was killed, or silent for too long.")
    most_losses: Mapped[int] = count("The evaluation ends without a result after this many losses.")


class Worker(Base):
    """Workers, builders and judges of the evaluation service, and their last sign of life."""

    __tablename__ = "workers"

    owner: Mapped[str] = any_text("Machine and process.", primary_key=True)
    role: Mapped[str] = keyword("`all`, `build` or `judge`.")
    backend: Mapped[str] = any_text("Backends that it takes, separated by commas.")
    device: Mapped[str] = any_text("The device that it measures on; empty for a builder.")
    places: Mapped[int] = count("The most evaluations that it has at once.")
    running: Mapped[int] = count("Number of evaluations that it has now.")
    done: Mapped[int] = count("Number of evaluations that it has ended.")
    renewed: Mapped[float] = number("Unix time of its last sign of life, by the database's clock.")
    created: Mapped[str] = created_at()
    ended: Mapped[str | None] = created_at(
        "When it ended in order; NULL while it works, or if it was killed."
    )
    gpu: Mapped[str | None] = any_text("UUID of the one GPU that it measures on.")
    waits: Mapped[str | None] = any_text("The reason why it takes no evaluations now; NULL: it takes them.")


class Gpu(Base):
    """GPUs that judges of the evaluation service have seen. At most one judge in the whole cluster
    holds a GPU. Rows change, and are not deleted."""

    __tablename__ = "gpus"

    uuid: Mapped[str] = any_text("`GPU-...`, as the driver names it.", primary_key=True)
    name: Mapped[str] = any_text("The GPU's product name.")
    host: Mapped[str] = any_text("Name of the machine on which a judge saw it last.")
    owner: Mapped[str | None] = any_text("Machine and process of the judge that holds it; NULL: none does.")
    token: Mapped[int] = count("Fencing token: how often it was taken. A verdict of an older one is refused.")
    leased: Mapped[float | None] = number("Unix time at which the judge's lease ends, unless it is renewed.")
    renewed: Mapped[float] = number("Unix time of its judge's last sign of life, by the database's clock.")
    set_aside: Mapped[str | None] = any_text("The reason why no judge takes the GPU; NULL: any judge may.")
    unproven: Mapped[bool] = boolean("True after an operator put it back, until it has passed the canary.")
    created: Mapped[str] = created_at()


METADATA = Base.metadata
"""Of all tables: whoever imports it from here has registered each."""


def all_tables() -> list[type[Base]]:
    """The classes of all tables, in the order of the schema's documentation: `models`, then the service."""
    modules = [models.__name__, __name__]
    return sorted(Base.__subclasses__(), key=lambda table: modules.index(table.__module__))
