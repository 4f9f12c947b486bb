"""The plan has every check, no stage ends what it cannot end; who chooses statuses."""

from __future__ import annotations

import ast
from pathlib import Path

from kernelproof.types import Status
from kernelproof.verifier import status_rules
from kernelproof.verifier.referee.plan import PLAN
from kernelproof.verifier.status_rules import CheckKind

ROOT = Path(__file__).parents[2] / "pipeline"


def test_every_check_stands_in_the_plan() -> None:
    kinds = {each for each in vars(status_rules).values() if isinstance(each, CheckKind)}
    asked = {check for stage in PLAN for check in stage.checks}
    assert kinds == {check for check in asked if not check.name.endswith(" again")}


def test_no_stage_ends_as_correct_or_before_a_referee_sees_the_candidate() -> None:
    before = {Status.CORRECT, Status.NO_CODE, Status.SYNTAX_ERROR, Status.CONTRACT_ERROR, Status.TRUNCATED}
    assert not before & {status for stage in PLAN for status in stage.may_end}


def test_extraction_and_the_verifier_choose_statuses_in_one_module_each() -> None:
    """Elsewhere in the two a status is compared with, or a key."""
    files = [path for folder in ("extraction", "verifier") for path in (ROOT / folder).rglob("*.py")]
    choosing = {path.relative_to(ROOT).as_posix() for path in files if chosen_statuses(path.read_text())}
    assert choosing == {"extraction/extract.py", "verifier/status_rules.py"}


def chosen_statuses(source: str) -> set[str]:
    tree = ast.parse(source)
    compared = {
        inner
        for node in ast.walk(tree)
        for part in (node.keys if isinstance(node, ast.Dict) else [node])
        if isinstance(node, ast.Dict | ast.Compare | ast.MatchValue) and part is not None
        for inner in ast.walk(part)
    }
    named = {node for node in ast.walk(tree) if isinstance(node, ast.Attribute)} - compared
    return {node.attr for node in named if isinstance(node.value, ast.Name) and node.value.id == "Status"}
