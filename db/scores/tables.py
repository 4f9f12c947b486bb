"""The tables behind the scores. Everything in them can be computed anew from the others."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import created_at, json, position_key, row_id
from kernelproof.db.types import AnyText


class ScoreFacts(Base):
    """Facts that many verifications share: each combination is stored once. This is a cache: it may be
    emptied together with `score_cells`."""

    __tablename__ = "score_facts"

    id: Mapped[int] = row_id()
    facts: Mapped[list[Any]] = json("The fields of `Facts` in `db/scores/filters.py`, in their order.")


class ScoreCell(Base):
    """Packed rows of the leaderboard: the attempts of up to 1,024 samples of a run and problem. This is a
    cache: it may be emptied, if all samples are listed in `score_changes`."""

    __tablename__ = "score_cells"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True, comment="The run.")
    problem: Mapped[int] = mapped_column(ForeignKey("problems.id"), primary_key=True, comment="The problem.")
    chunk: Mapped[int] = position_key("Number of the sample divided by 1,024.")
    packed: Mapped[bytes] = mapped_column(
        LargeBinary, comment="Records in the layout of `db/scores/layout.py`."
    )


class ScoreChange(Base):
    """Samples that changed since they were packed. Triggers list them where an attempt, answer, verification
    or retraction is stored; the next leaderboard packs them, and empties the list."""

    __tablename__ = "score_changes"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True, comment="The run.")
    problem: Mapped[int] = mapped_column(ForeignKey("problems.id"), primary_key=True, comment="The problem.")
    sample: Mapped[int] = position_key("The sample.")


class CurrentPolicy(Base):
    """The policy under which results rank: that of the newest program that opened the database. One row."""

    __tablename__ = "current_policy"

    policy: Mapped[str] = mapped_column(
        AnyText, primary_key=True, comment="The policy, as verifications have it."
    )


class RunTag(Base):
    """Words that people put on runs, to find them together."""

    __tablename__ = "run_tags"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True, comment="The run.")
    tag: Mapped[str] = mapped_column(AnyText, primary_key=True, comment="The word.")
    created: Mapped[str] = created_at()
