"""The table of the chain."""

from __future__ import annotations

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import count, created_at, row_id, symbol


class Link(Base):
    """The chain of hashes: a link for each row that was stored, in the order in which they were stored.
    `kernelproof db check` walks along it. Append-only."""

    __tablename__ = "hash_chain"

    id: Mapped[int] = row_id()
    record: Mapped[str] = symbol(
        "The table of the row; `migration` for the link that closes those made when the chain was introduced."
    )
    number: Mapped[int] = count("The row's `id` there; of a `migration` how many links it closes.")
    content: Mapped[bytes] = mapped_column(
        LargeBinary, comment="SHA-256 of the row's columns, with the rows of its evidence."
    )
    sha256: Mapped[bytes] = mapped_column(
        LargeBinary, comment="SHA-256 of the link before (its `sha256`), `record`, `number` and `content`."
    )
    created: Mapped[str | None] = created_at("Of a `migration`: when it was made; else NULL.")
