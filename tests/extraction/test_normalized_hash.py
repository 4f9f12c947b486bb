"""Which programs are alike: those that differ in what no compiler and no interpreter looks at."""

from __future__ import annotations

import pytest

from kernelproof.extraction.normalise import normalized_hash

PROGRAM = '''"""A kernel."""
import torch

SOURCE = r"""
#include <cmath>
#define N 4
// adds
float add(float a, float b) { return a + b; }
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x + 1  # the result
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A kernel."""\n', ""),
        ("  # the result", ""),
        ("x + 1", "(x   +\n            1)"),
        ("// adds\n", "/* adds\n two numbers */"),
        ("return a + b;", "\n    return a+b ;\n"),
        ("\n\n\nclass", "\n\nclass"),
    ],
)
def test_comments_blanks_and_docstrings_do_not_matter(old: str, new: str) -> None:
    assert old in PROGRAM
    assert normalized_hash(PROGRAM.replace(old, new)) == normalized_hash(PROGRAM)


@pytest.mark.parametrize(
    ("old", "new"),
    [("x + 1", "x + 2"), ("a + b", "a - b"), ("#define N 4\n", "#define N 8\n"), ("return x", "yield x")],
)
def test_anything_else_does(old: str, new: str) -> None:
    assert old in PROGRAM
    assert normalized_hash(PROGRAM.replace(old, new)) != normalized_hash(PROGRAM)


@pytest.mark.parametrize("text", ["", "def (", "a\0b", "(" * 5000, "x = " + "-" * 20_000 + "1", "\ud800"])
def test_what_is_no_python_has_one_too(text: str) -> None:
    assert normalized_hash(text) == normalized_hash(f"{text}\n") != normalized_hash(f"{text} more")
