"""Which size a run uses when the user names one, and when not."""

from __future__ import annotations

from typing import Any

import pytest

from kernelproof.errors import UsageError
from kernelproof.runs.sizes import choose_size
from kernelproof.types import Problem
from tests.db import samples


def problem(number: int, *presets: str) -> Problem:
    sizes: dict[str, dict[str, Any]] = {preset: {} for preset in presets}
    return samples.problem(number).model_copy(update={"sizes": sizes})


BOTH, FULL, NONE = problem(1, "full", "small"), problem(2, "full"), problem(3)


@pytest.mark.parametrize(
    "wished, backend, problems, chosen",
    [
        (None, "cuda", [BOTH], "full"),
        (None, "cpp", [BOTH], "small"),
        ("", "cpp", [BOTH, BOTH], "small"),
        (None, "cpp", [FULL, NONE], "full"),
        ("full", "cpp", [BOTH, FULL, NONE], "full"),
        ("small", "cuda", [BOTH], "small"),
    ],
)
def test_chosen(wished: str | None, backend: str, problems: list[Problem], chosen: str) -> None:
    assert choose_size(wished, backend, problems) == chosen


@pytest.mark.parametrize("wished, problems", [("tiny", [BOTH]), (None, [BOTH, FULL]), ("small", [NONE])])
def test_a_size_that_a_problem_lacks_is_an_error_that_names_it(
    wished: str | None, problems: list[Problem]
) -> None:
    with pytest.raises(UsageError, match=rf"{problems[-1].id} has full.*choose with --size"):
        choose_size(wished, "cpp", problems)
