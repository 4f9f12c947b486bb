"""Plurals: one attempt, two attempts."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from kernelproof.wording import counted

ROOT = Path(__file__).parents[1]
ALLOWED = {"is", "has", "was", "as", "bytes"}
"""Words with an s at their end that are no plurals, or of what there is always more than one."""


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


def test_no_message_makes_its_plurals_by_hand() -> None:
    found = []
    for file in [*(ROOT / "pipeline").rglob("*.py"), *(ROOT / "db").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr) and _by_hand(node):
                found.append(f"{file.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


def _by_hand(text: ast.JoinedStr) -> bool:
    """Whether a text has `error(s)` in it, `{len(errors)} errors`, or `{'' if n == 1 else 's'}`."""
    for part, following in pairwise([*text.values, ast.Constant("")]):
        if isinstance(part, ast.Constant):
            if re.search(r"[a-z]\(s\)", str(part.value)):
                return True
            continue
        value = part.value if isinstance(part, ast.FormattedValue) else part
        if isinstance(value, ast.IfExp) and {"", "s"} == {
            ast.unparse(value.body)[1:-1],
            ast.unparse(value.orelse)[1:-1],
        }:
            return True
        noun = (
            re.match(r" ([a-z]+s)\b", str(following.value)) if isinstance(following, ast.Constant) else None
        )
        counts = isinstance(value, ast.Call) and ast.unparse(value.func) in ("len", "sum")
        if noun and counts and noun[1] not in ALLOWED:
            return True
    return False
