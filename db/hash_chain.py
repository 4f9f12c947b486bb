"""The table of a chain of hashes that earlier versions wrote. Its rows are kept, and nothing reads them."""

from __future__ import annotations

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import count, created_at, keyword, row_id


class Link(Base):
    """The chain of hashes of databases that development versions before 0.2 wrote: the `db check` of such a
    version verifies it. Nothing is added now."""

    __tablename__ = "hash_chain"

    id: Mapped[int] = row_id()
    record: Mapped[str] = keyword("The table of the row, or `migration`.")
    number: Mapped[int] = count("The row's `id` in that table, or the number of links before a `migration`.")
    content: Mapped[bytes] = mapped_column(LargeBinary, comment="SHA-256 of the row and of its evidence.")
    sha256: Mapped[bytes] = mapped_column(LargeBinary, comment="SHA-256 of this link and the one before.")
    created: Mapped[str | None] = created_at("Of a `migration`; else NULL.")
