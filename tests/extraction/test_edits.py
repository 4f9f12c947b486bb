"""Answers that change the program of the question: diffs and SEARCH/REPLACE blocks, applied or explained."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.extraction import extract
from kernelproof.extraction.blocks import edited
from kernelproof.types import Extraction, Response, Status

BASE = """import torch

TILE = 16


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x
        y = torch.relu(y)
        return y


def unused():
    y = x
    return y
"""
FASTER = BASE.replace("TILE = 16", "TILE = 32").replace(
    "        y = torch.relu(y)\n", "        y = y.relu_()\n"
)
DIFF = "".join(difflib.unified_diff(BASE.splitlines(True), FASTER.splitlines(True), "a.py", "b.py", n=1))
BLOCKS = """<<<<<<< SEARCH
TILE = 16
=======
TILE = 32
>>>>>>> REPLACE
and
<<<<<<< SEARCH
        y = torch.relu(y)
=======
        y = y.relu_()
>>>>>>> REPLACE
"""


def answered(text: str, base: str | None = BASE) -> Extraction:
    return extract(Response(text=text), base)


@pytest.mark.parametrize(
    "text",
    [
        f"Larger tiles.\n```diff\n{DIFF}```\n",
        f"<think>\n```diff\n-no\n```\n</think>\nLarger tiles.\n\n{DIFF}",
        f"```\n{DIFF}```",
        f"```diff\n{DIFF.replace('@@ -2,3 +2,3 @@', '@@ -40,9 +31,2 @@')}```",
        "```diff\n-TILE = 16\n+TILE = 32\n```\nand\n```diff\n@@ ... @@\n-        y = torch.relu(y)\n"
        "+        y = y.relu_()\n```",
        BLOCKS,
        f"```python\n{BLOCKS}```",
    ],
)
def test_an_edit_that_fits_gives_the_changed_program(text: str) -> None:
    found = answered(text)
    assert found.candidate is not None, found.reason
    assert (found.candidate.source, found.method) == (FASTER, "diff")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            f"```diff\n{DIFF.replace('relu(y)', 'relu( y)')}```",
            "is a diff that does not fit: hunk 2: the line 'y = torch.relu( y)' is not in the program",
        ),
        (
            "```diff\n@@ -1,2 +1,1 @@\n-TILE = 16\n-import torch\n```",
            "a diff that does not fit: hunk 1: its old lines do not stand in the program in this order",
        ),
        ("```diff\n-    return y\n+    return x\n```", "hunk 1: the line 'return y' is not in the program"),
        (
            "<<<<<<< SEARCH\n\n=======\n# new\n>>>>>>> REPLACE",
            "SEARCH/REPLACE blocks that does not fit: block 1: its old lines stand at",
        ),
        ("```diff\n+import math\n```", "hunk 1: it has no line of the program, so its place is unknown"),
    ],
)
def test_an_edit_that_does_not_fit_says_where(text: str, reason: str) -> None:
    text = text.replace("-    return y\n", "-  return y\n")
    found = answered(text)
    assert (found.candidate, found.status) == (None, Status.NO_CODE)
    assert reason in found.reason


def test_without_a_program_in_the_question_there_is_nothing_to_change() -> None:
    found = answered(f"```diff\n{DIFF}```", base=None)
    assert found.status is Status.NO_CODE and "diff_skipped" in found.warnings
    assert found.reason == "the answer is a diff, and the question showed no program that it could change"


def test_line_numbers_choose_between_places_that_are_alike() -> None:
    base = "class ModelNew: ...\n" + "a = 1\nb = 2\n" * 3
    changed = edited("```diff\n@@ -5,1 +5,1 @@\n-b = 2\n+b = 3\n```", base)
    assert (
        changed is not None
        and changed.code == "class ModelNew: ...\na = 1\nb = 2\na = 1\nb = 3\na = 1\nb = 2\n"
    )
    far = edited("```diff\n@@ -500,1 +5,1 @@\n-b = 2\n+b = 3\n```", base)
    assert far is not None and far.code is None and "stand at 3 places" in far.reason


def test_a_whole_program_goes_before_a_diff_beside_it() -> None:
    found = answered(f"```python\n{FASTER}```\nThat is:\n```diff\n{DIFF}```\n")
    assert found.candidate is not None and found.candidate.source == FASTER and found.method == "fence"


lines = st.lists(st.sampled_from(["a", "b", "    c", "", "- d", "+ e", "@ f"]), max_size=12)


@given(old=lines, new=lines, context=st.integers(0, 3))
def test_what_difflib_writes_is_applied_or_refused_and_never_misapplied(
    old: list[str], new: list[str], context: int
) -> None:
    """Alike places may be too many to choose from; then it is refused, or gives what the diff says."""
    base, wanted = "\n".join(["class ModelNew:", *old, "end"]), "\n".join(["class ModelNew:", *new, "end"])
    diff = difflib.unified_diff(base.split("\n"), wanted.split("\n"), lineterm="", n=context)
    changed = edited("```diff\n" + "\n".join(diff) + "\n```", base)
    assert changed is None or changed.code in (None, wanted)


@given(text=st.text(st.sampled_from("@-+ <>=SEARCHPL\n`diff1,a"), max_size=300))
def test_any_text_is_taken(text: str) -> None:
    assert edited(text, BASE) == edited(text, BASE)
