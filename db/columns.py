"""Columns of the tables, by what they hold. The comment of each is its documentation."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Float, ForeignKey, String
from sqlalchemy.orm import MappedColumn, mapped_column

from kernelproof.db.types import SHA256, AnyText, Int64, Json, UtcTime


def any_text(comment: str) -> MappedColumn[Any]:
    """Any string."""
    return mapped_column(AnyText, comment=comment)


def keyword(comment: str) -> MappedColumn[Any]:
    """A word of a closed vocabulary of ours, plain ASCII."""
    return mapped_column(String, comment=comment)


def json(comment: str) -> MappedColumn[Any]:
    """A JSON value."""
    return mapped_column(Json, comment=comment)


def number(comment: str) -> MappedColumn[Any]:
    """A float."""
    return mapped_column(Float, comment=comment)


def count(comment: str) -> MappedColumn[Any]:
    """An integer."""
    return mapped_column(Int64, comment=comment)


def boolean(comment: str) -> MappedColumn[Any]:
    """True or false."""
    return mapped_column(Boolean, comment=comment)


def text_key(comment: str) -> MappedColumn[Any]:
    """The key of a row of `texts`."""
    return mapped_column(SHA256, ForeignKey("texts.sha256"), comment=comment)


def row_id() -> MappedColumn[int]:
    """The number of a row."""
    return mapped_column(Int64, primary_key=True, comment="Row number.")


def created_at(comment: str = "When the row was written (UTC, ISO 8601).") -> MappedColumn[Any]:
    """A moment."""
    return mapped_column(UtcTime, comment=comment)


def verification_key(comment: str = "The verification it belongs to.") -> MappedColumn[int]:
    """The verification whose evidence a row is."""
    return mapped_column(Int64, ForeignKey("verifications.id"), primary_key=True, comment=comment)


def position_key(comment: str) -> MappedColumn[int]:
    """A row's place among those of its verification."""
    return mapped_column(Int64, primary_key=True, comment=comment)
