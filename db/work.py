"""The tables of work in progress: who asks what, how far each command is. Their rows change and go."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import any_text, boolean, created_at, json, number, row_id
from kernelproof.db.types import AnyText


class Lease(Base):
    """Questions that a process is at work on. After a minute without renewal any process may take a lease."""

    __tablename__ = "leases"

    key: Mapped[str] = mapped_column(
        AnyText,
        primary_key=True,
        comment="The attempt's question key, `attempt:N` where there is none, or `tune:...` for a tuning.",
    )
    owner: Mapped[str] = any_text("Machine, process and batch that hold it.")
    renewed: Mapped[float] = number("Unix time of the last renewal, in seconds.")


class Batch(Base):
    """Commands that ask models or judge candidates: their configuration, progress and end."""

    __tablename__ = "batches"

    id: Mapped[int] = row_id()
    owner: Mapped[str] = any_text("Machine and process of the command.")
    name: Mapped[str | None] = any_text("The name of its runs.")
    runs: Mapped[list[int]] = json("Numbers of the runs that it adds to, one for each model.")
    config: Mapped[dict[str, Any]] = json("The whole configuration, resolved: `--like` starts from it.")
    progress: Mapped[dict[str, Any]] = json("The progress that `kernelproof status` shows, as of `renewed`.")
    renewed: Mapped[float] = number("Unix time of the last sign of life, in seconds.")
    ended: Mapped[str | None] = any_text(
        "How the command ended; NULL while it works, and after it was killed."
    )
    created: Mapped[str] = created_at()
    finished: Mapped[str | None] = created_at("When the command ended.")


class ServerBatch(Base):
    """Batches of questions at a model's server, to be answered within a day."""

    __tablename__ = "server_batches"

    id: Mapped[int] = row_id()
    server_id: Mapped[str] = any_text(
        "The server's id of the batch. Until the server has given one: `?` and an id of kernelproof's."
    )
    model: Mapped[str] = any_text("`openai:MODEL`.")
    base_url: Mapped[str | None] = any_text("The server's address, when one was set.")
    keys: Mapped[list[str]] = json(
        "Keys of its questions, sent as custom ids. Questions that failed are left out."
    )
    open: Mapped[bool] = boolean("True as long as answers may come.")
    created: Mapped[str] = created_at()
