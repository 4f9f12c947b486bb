"""Plurals: one attempt, two attempts."""

from __future__ import annotations

import pytest

from kernelproof.wording import counted


@pytest.mark.parametrize(
    ("count", "nouns", "said"),
    [
        (0, ("attempt",), "0 attempts"),
        (1, ("attempt",), "1 attempt"),
        (2, ("attempt",), "2 attempts"),
        (1, ("memory", "memories"), "1 memory"),
        (2, ("memory", "memories"), "2 memories"),
    ],
)
def test_counted(count: int, nouns: tuple[str, ...], said: str) -> None:
    assert counted(count, *nouns) == said
