"""Every script in `faults/`, in every tier, ends as its header says, leaves nothing, and changes nothing."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.conftest import Driver

SCRIPTS = sorted((Path(__file__).parent / "faults").glob("*.py"))
TIERS = ("A", "B", "C1", "C2")


def header(script: Path) -> dict[str, str]:
    """`# name: value` lines."""
    return dict(re.findall(r"^# ([a-z ]+): (.+)$", script.read_text(), re.MULTILINE))


def limits(text: str) -> dict[str, float]:
    pairs = (pair.split("=") for pair in text.split())
    return {name: float(value) if name.endswith("_s") else int(value) for name, value in pairs}


@pytest.mark.few(40)
@pytest.mark.parametrize(
    "tier", [pytest.param(tier, marks=[] if tier in ("A", "C2") else pytest.mark.slow) for tier in TIERS]
)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_fault_ends_as_expected(script: Path, tier: str, open_driver: Callable[[str], Driver]) -> None:
    said = header(script)
    if said.get("machine", platform.machine()) != platform.machine():
        pytest.skip(f"a fault of {said['machine']} machines")
    outcome = open_driver(tier).ask(script.stem, **limits(said.get("limits", "")))
    expect(outcome, said)


@pytest.mark.parametrize("fault", ["deaf_double_fork", "segfault", "network", "memory_bomb"])
def test_tier_d_still_limits_and_kills(fault: str, open_driver: Callable[[str], Driver]) -> None:
    said = header(Path(__file__).parent / "faults" / f"{fault}.py")
    expect(open_driver("D").ask(fault, **limits(said.get("limits", ""))), said)


def expect(outcome: dict[str, Any], said: dict[str, str]) -> None:
    shown = "\n".join(f"{name}: {value}" for name, value in outcome.items())
    assert outcome["state"] in said["expect"].split(" or "), shown
    assert outcome["survivors"] == []
    assert outcome["intact"], "the database or a neighbour's directory was changed"
    if "exit code" in said:
        assert outcome["exit_code"] == int(said["exit code"])
    if "signal" in said:
        assert outcome["signal"] == said["signal"]
    if "stdout" in said:
        assert outcome["stdout"].strip() == said["stdout"]
