"""docs/reference/reasons.md has the reasons for which a candidate can end, collected from the code."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from kernelproof.extraction import WARNINGS
from kernelproof.types import BuildState, Severity, Status
from kernelproof.verifier import status_rules
from kernelproof.verifier.policy import RULES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "reasons.md").read_text()
PLACES = [
    path
    for folder in ("verifier/referee", "verifier/workers", "verifier/devices", "verifier/engine", "runs")
    for path in sorted((ROOT / "pipeline" / folder).rglob("*.py"))
]
WORDS = re.compile(r"[A-Za-z]{3}.*[A-Za-z]{3}", re.DOTALL)
"""What a fragment of a reason must hold to be told apart from punctuation."""


@cache
def failing_checks() -> dict[str, str]:
    """The name of every check that can fail, and where that is."""
    kinds = (each for each in vars(status_rules).values() if isinstance(each, status_rules.CheckKind))
    return {each.name: "pipeline/verifier/status_rules.py" for each in kinds if each.may_end or each.flags}


@cache
def fragments() -> dict[str, str]:
    """The longest fixed part of every reason that stands where an attempt is ended, and where that is."""
    found: dict[str, str] = {}
    for path in PLACES:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(value=cause, attr="ended"), args=[reason, *_]) if (
                    "ause" in ast.unparse(cause)
                ):
                    parts = (part.value for part in ast.walk(reason) if isinstance(part, ast.Constant))
                    longest = max((part for part in parts if isinstance(part, str)), key=len, default="")
                    if WORDS.search(longest := longest.strip(" :;,.(")):
                        found[longest] = f"{path.relative_to(ROOT)}:{node.lineno}"
    return found


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_the_collection_sees_what_it_should() -> None:
    assert {"values", "own_kernel", "host_clock", "output_apart", "result_kept"} <= set(failing_checks())
    assert {"it did not answer within its time limit", "the problem itself failed"} <= set(fragments())


@pytest.mark.parametrize("name", sorted(failing_checks()))
def test_every_check_that_can_fail_is_there(name: str) -> None:
    assert f"`{name}" in PAGE, (
        f"{failing_checks()[name]}: docs/reference/reasons.md does not mention the check {name!r}"
    )


@pytest.mark.parametrize("fragment", sorted(fragments()))
def test_every_other_reason_is_there(fragment: str) -> None:
    assert plain(fragment) in plain(PAGE), f"{fragments()[fragment]}: reasons.md lacks {fragment!r}"


def test_every_status_has_its_section_in_their_order() -> None:
    assert re.findall(r"^## `(\w+)`$", PAGE, re.MULTILINE) == [status.value for status in Status]


def test_every_reason_says_what_to_do() -> None:
    reasons = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]
    assert len(reasons) >= 40
    for reason in reasons:
        title, _, text = reason.partition("\n")
        assert "\n```\n" in text, f"{title}: no example"
        assert re.search(r"^\*\*Do:\*\* \S", text, re.MULTILINE), f"{title}: it does not say what to do"


def test_every_rule_that_ends_an_attempt_is_there() -> None:
    fatal = [rule.name for rule in RULES if rule.severity is Severity.ERROR]
    assert fatal
    assert [name for name in fatal if f"`{name}`" not in PAGE] == []


def test_every_state_of_a_build_is_there() -> None:
    assert [state for state in BuildState if state is not BuildState.OK and f"`{state}`" not in PAGE] == []


def test_what_extraction_remarks_is_a_remark() -> None:
    section = PAGE.partition("## `no_code`")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z_]+)`", section))
    assert {"split_over_blocks", "placeholder_skipped", "diff_skipped", "code_only_in_reasoning"} <= named
    assert named <= WARNINGS.keys() | {"no_code", "response", "get_inputs"}
