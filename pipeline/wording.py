"""Numbers in sentences."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 attempt`, `2 attempts`. `plural` is for nouns whose plural is not made with an s at their end."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
