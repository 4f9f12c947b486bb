"""The table of retractions: verifications that no longer count."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import any_text, boolean, created_at, row_id


class Retraction(Base):
    """Verifications that no longer count, or count again. The newest row of a verification decides.
    Append-only."""

    __tablename__ = "retractions"

    id: Mapped[int] = row_id()
    verification_id: Mapped[int] = mapped_column(
        ForeignKey("verifications.id"), index=True, comment="The verification."
    )
    counts: Mapped[bool] = boolean("False: retracted. True: the retraction was taken back.")
    reason: Mapped[str] = any_text("The reason, in the words of the person who gave it.")
    created: Mapped[str] = created_at()
