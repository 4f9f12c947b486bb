"""Numbers in sentences, and texts that can be sent."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 attempt`, `2 attempts`. `plural` is for nouns whose plural is not made with an s at their end."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def encodable(text: str) -> str:
    """`text` with lone surrogates replaced: servers may send them, but no request can carry them."""
    return text.encode("utf-8", "replace").decode()
