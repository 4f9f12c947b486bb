"""The tables of work in progress: who asks what, how far each command is. Their rows change and go."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import created_at, json, number, row_id, truth, words
from kernelproof.db.types import Words


class Lease(Base):
    """Questions that a process is at work on. A lease that was not renewed for a minute is anybody's."""

    __tablename__ = "leases"

    key: Mapped[str] = mapped_column(
        Words, primary_key=True, comment="The attempt's question key, or `attempt:N` where it has none."
    )
    owner: Mapped[str] = words("Machine, process and batch that hold it.")
    renewed: Mapped[float] = number("Unix time of the last renewal, in seconds.")


class Batch(Base):
    """Commands that asked or judged: what they were told, how far they are, how they ended."""

    __tablename__ = "batches"

    id: Mapped[int] = row_id()
    owner: Mapped[str] = words("Machine and process.")
    name: Mapped[str | None] = words("The runs' name.")
    runs: Mapped[list[int]] = json("The runs it adds to, one for each model.")
    config: Mapped[dict[str, Any]] = json("Everything it was told, resolved: what `--like` starts from.")
    progress: Mapped[dict[str, Any]] = json("What `kernelproof status` shows, as of `renewed`.")
    renewed: Mapped[float] = number("Unix time of the last sign of life, in seconds.")
    ended: Mapped[str | None] = words("How it ended; NULL while it works, and when it was killed.")
    created: Mapped[str] = created_at()
    finished: Mapped[str | None] = created_at("When it ended.")


class ServerBatch(Base):
    """Batches of questions that a model's server was handed, to be answered within a day."""

    __tablename__ = "server_batches"

    id: Mapped[int] = row_id()
    server_id: Mapped[str] = words("The server's id of the batch; ours after a `?` until it said one.")
    model: Mapped[str] = words("`openai:MODEL`.")
    base_url: Mapped[str | None] = words("The server's address, when one was set.")
    keys: Mapped[list[str]] = json("Keys of its questions, the custom ids; without those that failed.")
    open: Mapped[bool] = truth("True as long as answers may come.")
    created: Mapped[str] = created_at()
