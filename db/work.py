"""The tables of work in progress: who asks what, how far each command is. Their rows change and go."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import created_at, json, number, row_id, truth, words
from kernelproof.db.types import Words


class Lease(Base):
    """Questions that a process is at work on. After a minute without renewal any process may take a lease."""

    __tablename__ = "leases"

    key: Mapped[str] = mapped_column(
        Words,
        primary_key=True,
        comment="The attempt's question key, `attempt:N` where there is none, or `tune:...` for a tuning.",
    )
    owner: Mapped[str] = words("Machine, process and batch that hold it.")
    renewed: Mapped[float] = number("Unix time of the last renewal, in seconds.")


class Batch(Base):
    """Commands that ask models or judge candidates: their configuration, progress and end."""

    __tablename__ = "batches"

    id: Mapped[int] = row_id()
    owner: Mapped[str] = words("Machine and process of the command.")
    name: Mapped[str | None] = words("The name of its runs.")
    runs: Mapped[list[int]] = json("Numbers of the runs that it adds to, one for each model.")
    config: Mapped[dict[str, Any]] = json("The whole configuration, resolved: `--like` starts from it.")
    progress: Mapped[dict[str, Any]] = json("The progress that `kernelproof status` shows, as of `renewed`.")
    renewed: Mapped[float] = number("Unix time of the last sign of life, in seconds.")
    ended: Mapped[str | None] = words("How the command ended; NULL while it works, and after it was killed.")
    created: Mapped[str] = created_at()
    finished: Mapped[str | None] = created_at("When the command ended.")


class ServerBatch(Base):
    """Batches of questions at a model's server, to be answered within a day."""

    __tablename__ = "server_batches"

    id: Mapped[int] = row_id()
    server_id: Mapped[str] = words(
        "The server's id of the batch. Until the server has given one: `?` and an id of kernelproof's."
    )
    model: Mapped[str] = words("`openai:MODEL`.")
    base_url: Mapped[str | None] = words("The server's address, when one was set.")
    keys: Mapped[list[str]] = json(
        "Keys of its questions, sent as custom ids. Questions that failed are left out."
    )
    open: Mapped[bool] = truth("True as long as answers may come.")
    created: Mapped[str] = created_at()
