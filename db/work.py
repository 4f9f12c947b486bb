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
        comment="The attempt's question key, or `attempt:N` where it has none; `tune:...` of a tuning.",
    )
    owner: Mapped[str] = words("Machine, process and batch that hold it.")
    renewed: Mapped[float] = number("Unix time of the last renewal, in seconds.")


class Batch(Base):
    """Commands that ask or judge: their configuration, progress and end."""

    __tablename__ = "batches"

    id: Mapped[int] = row_id()
    owner: Mapped[str] = words("Machine and process.")
    name: Mapped[str | None] = words("The runs' name.")
    runs: Mapped[list[int]] = json("The runs it adds to, one for each model.")
    config: Mapped[dict[str, Any]] = json("The whole configuration, resolved: `--like` starts from it.")
    progress: Mapped[dict[str, Any]] = json("The progress that `kernelproof status` shows, as of `renewed`.")
    renewed: Mapped[float] = number("Unix time of the last sign of life, in seconds.")
    ended: Mapped[str | None] = words("How it ended; NULL while it works, and when it was killed.")
    created: Mapped[str] = created_at()
    finished: Mapped[str | None] = created_at("When it ended.")


class ServerBatch(Base):
    """Batches of questions at a model's server, to be answered within a day."""

    __tablename__ = "server_batches"

    id: Mapped[int] = row_id()
    server_id: Mapped[str] = words(
        "The server's id of the batch; until the server gives one, ours after a `?`."
    )
    model: Mapped[str] = words("`openai:MODEL`.")
    base_url: Mapped[str | None] = words("The server's address, when one was set.")
    keys: Mapped[list[str]] = json("Keys of its questions, the custom ids; without those that failed.")
    open: Mapped[bool] = truth("True as long as answers may come.")
    created: Mapped[str] = created_at()
