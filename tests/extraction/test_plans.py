"""Plans in prose: how answers write them, and that no answer does harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.extraction import extract_plans, read_plans
from kernelproof.extraction.extract import MAX_PROSE, MAX_TITLE, MOST
from kernelproof.types import Response, Status

TWO = [("Fuse", "One pass."), ("Tile it", "Shared memory.")]


@pytest.mark.parametrize(
    "text",
    [
        "## 1. Fuse\nOne pass.\n\n## 2. Tile it\nShared memory.\n",
        "Here are 2 plans.\n\n### Plan 1: Fuse\n\nOne pass.\n### Plan 2: Tile it\nShared memory.",
        "**1. Fuse**\nOne pass.\n**2. Tile it**\nShared memory.",
        "1. **Fuse**: One pass.\n2. **Tile it** - Shared memory.\n",
        "Plan 1 - Fuse\nOne pass.\nPlan 2 - Tile it\nShared memory.",
        "## Fuse\nOne pass.\n## Tile it\nShared memory.",
        "<think>\n## 1. Draft\n## 2. Other\n</think>\n## 1. Fuse\nOne pass.\n## 2. Tile it\nShared memory.",
        "## 1. Fuse\r\nOne pass.\r\n## 2. Tile it\r\n```cpp\n## 3. No plan\n```\r\nShared memory.",
        "## 1. Fuse\nOne pass.\n## 2. Tile it\nShared memory.\n## 3. fuse\nThe same again.",
    ],
)
def test_plans_are_found_as_models_write_them(text: str) -> None:
    assert [(plan.title, plan.text) for plan in read_plans(Response(text=text))] == TWO
    found = extract_plans(Response(text=text))
    assert (found.candidate, found.status, found.reason) == (None, Status.PLANS, "2 plans")


def test_a_list_inside_a_plan_is_part_of_it() -> None:
    (first, second) = read_plans(Response(text="## 1. A\n1. one\n2. two\n## 2. B\n3. three"))
    assert (first.text, second.text) == ("1. one\n2. two", "3. three")


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (Response(text="I cannot think of anything."), "no plan"),
        (Response(text=None), "no plan"),
        (Response(text="<think>## 1. A\n## 2. B"), "no plan"),
        (Response(text="## 1. A\n## 2. B", refusal="No."), "no plan: the server says: No."),
        (
            Response(text="## 1. A", finish_reason="content_filter"),
            "no plan: the server's finish reason is content_filter",
        ),
    ],
)
def test_an_answer_without_plans_says_so(response: Response, reason: str) -> None:
    assert read_plans(response) == ()
    assert extract_plans(response).reason == reason


@given(text=st.text(st.sampled_from("# 123.*\n`~aB\x1b\u2028\t:-Plan "), max_size=400))
def test_any_text_gives_bounded_plans_on_one_line_each(text: str) -> None:
    response = Response(text=text + "x" * 3_000)
    plans = read_plans(response)
    assert plans == read_plans(response) and len(plans) <= MOST
    for plan in plans:
        assert 0 < len(plan.title) <= MAX_TITLE and len(plan.title.splitlines()) == 1
        assert len(plan.text) <= MAX_PROSE + 4 and "`" not in plan.title
