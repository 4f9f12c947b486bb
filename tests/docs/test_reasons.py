"""docs/reference/reasons.md has every reason for which a candidate can end, collected from the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kernelproof.extraction import WARNINGS
from kernelproof.types import BuildState, Severity, Status, check_kinds
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
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def functions(tree: ast.Module) -> dict[ast.AST, ast.FunctionDef]:
    """For every node in a function the innermost one around it; a function is within itself."""
    outer_first = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    return {node: function for function in outer_first for node in ast.walk(function)}


def enclosing(tree: ast.Module, node: ast.AST) -> ast.FunctionDef | None:
    """The innermost function around a node."""
    return functions(tree).get(node)


def texts(tree: ast.Module, node: ast.expr, seen: frozenset[str] = frozenset()) -> Iterator[tuple[str, ...]]:
    """The fixed parts of the texts that an expression may be, each text a tuple of them.

    Names are followed to their assignments in the function, and parameters to the calls within the module.
    """
    match node:
        case ast.Constant(value=str(text)):
            yield (text,)
        case ast.JoinedStr(values=values):
            yield tuple(part.value for part in values if isinstance(part, ast.Constant))
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*texts(tree, body, seen), *texts(tree, orelse, seen))
        case ast.BinOp(left=left, op=ast.Add()):
            yield from texts(tree, left, seen)
        case ast.Name(id=name):
            function = enclosing(tree, node)
            here = f"{function.name if function else ''}.{name}"
            if here in seen:
                return
            for inner in ast.walk(function or tree):
                for target, value in assigned(inner):
                    if isinstance(target, ast.Name) and target.id == name:
                        yield from texts(tree, value, seen | {here})
            if function is not None:
                yield from given(tree, function, name, seen | {here})


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets and values of an assignment, also of several at once: `name, count = "x", 1`."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            else:
                yield target, node.value


def given(
    tree: ast.Module, function: ast.FunctionDef, name: str, seen: frozenset[str]
) -> Iterator[tuple[str, ...]]:
    """What callers within the module give for a parameter."""
    parameters = [argument.arg for argument in function.args.args]
    if name not in parameters:
        return
    place = parameters.index(name) - (parameters[0] == "self")
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if called == function.name and place < len(call.args):
            yield from texts(tree, call.args[place], seen)


def calls(path: Path, *names: str) -> Iterator[ast.Call]:
    if not any(f"{name}(" in path.read_text() for name in names):
        return
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call):
            function = node.func
            called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if called in names:
                yield node


@cache
def failing_checks() -> dict[str, str]:
    """The name of every check that can fail, and where that is."""
    kinds = (each for each in vars(check_kinds).values() if isinstance(each, check_kinds.CheckKind))
    return {each.name: "pipeline/types/check_kinds.py" for each in kinds if each.may_end or each.flags}


@cache
def fragments() -> dict[str, str]:
    """The longest fixed part of every reason that is given without a check, and where."""
    found: dict[str, str] = {}
    for path in PLACES:
        for call in calls(path, "Ended", "ended"):
            if len(call.args) < 2 or not (
                isinstance(call.args[0], ast.Attribute | ast.Name) and "tatus" in ast.unparse(call.args[0])
            ):
                continue
            for parts in texts(tree_of(path), call.args[1]):
                longest = max(parts, key=len, default="").strip(" :;,.(")
                if WORDS.search(longest):
                    found[longest] = f"{path.relative_to(ROOT)}:{call.lineno}"
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
    assert [state for state in BuildState if state.status is not None and f"`{state}`" not in PAGE] == []


def test_what_extraction_remarks_is_a_remark() -> None:
    section = PAGE.partition("## `no_code`")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z_]+)`", section))
    assert {"split_over_blocks", "placeholder_skipped", "diff_skipped", "code_only_in_reasoning"} <= named
    assert named <= WARNINGS.keys() | {"no_code", "response", "get_inputs"}
