"""The tables behind the scores. Everything in them can be computed anew from the others."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary, text
from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import created_at, json, position_key, row_id
from kernelproof.db.types import Words


class ScoreFacts(Base):
    """Facts that many verifications share: each combination is stored once. This is a cache: it may be
    emptied together with `score_cells.packed`."""

    __tablename__ = "score_facts"

    id: Mapped[int] = row_id()
    facts: Mapped[list[Any]] = json("The fields of `Facts` in `db/scores/filters.py`, in their order.")


class ScoreCell(Base):
    """Packed rows of the leaderboard: the attempts of up to 1,024 samples of a run and problem. Triggers set
    `packed` to NULL where an attempt, answer, verification or retraction changes. The next leaderboard packs
    these rows again. This is a cache: `UPDATE score_cells SET packed = NULL` empties it."""

    __tablename__ = "score_cells"
    __table_args__ = (
        Index(
            "ix_score_cells_unpacked",
            *("run_id", "problem", "chunk"),
            sqlite_where=text("packed IS NULL"),
            postgresql_where=text("packed IS NULL"),
        ),
    )

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True, comment="The run.")
    problem: Mapped[int] = mapped_column(ForeignKey("problems.id"), primary_key=True, comment="The problem.")
    chunk: Mapped[int] = position_key("Number of the sample divided by 1,024.")
    packed: Mapped[bytes | None] = mapped_column(
        LargeBinary, comment="Records in the layout of `db/scores/layout.py`; NULL: to be packed."
    )


class CurrentPolicy(Base):
    """The policy under which results rank: that of the newest program that opened the database. One row."""

    __tablename__ = "current_policy"

    policy: Mapped[str] = mapped_column(
        Words, primary_key=True, comment="The policy, as verifications have it."
    )


class RunTag(Base):
    """Words that people put on runs, to find them together."""

    __tablename__ = "run_tags"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True, comment="The run.")
    tag: Mapped[str] = mapped_column(Words, primary_key=True, comment="The word.")
    created: Mapped[str] = created_at()
