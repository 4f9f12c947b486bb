"""The table of the chain."""

from __future__ import annotations

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import count, created_at, row_id, symbol


class Link(Base):
    """The chain of hashes: a link for each row of evidence, in the order in which the rows were stored.
    `kernelproof db check` walks along it. Append-only."""

    __tablename__ = "hash_chain"

    id: Mapped[int] = row_id()
    record: Mapped[str] = symbol(
        "The table of the row. `migration`: this link closes the links that were made when an older database "
        "got its chain."
    )
    number: Mapped[int] = count(
        "The row's `id` in that table. For a `migration`: the number of links that it closes."
    )
    content: Mapped[bytes] = mapped_column(
        LargeBinary, comment="SHA-256 of the row's columns and of the rows of its evidence."
    )
    sha256: Mapped[bytes] = mapped_column(
        LargeBinary, comment="SHA-256 of the `sha256` of the link before, `record`, `number` and `content`."
    )
    created: Mapped[str | None] = created_at("For a `migration`: when the link was made; else NULL.")
