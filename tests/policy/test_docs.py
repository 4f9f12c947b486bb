"""docs/reference/policy.md lists the rules as the program has them."""

from __future__ import annotations

import re
from pathlib import Path

from kernelproof.verifier.policy import RULES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "policy.md"


def test_the_page_lists_the_rules() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)

    assert rows == [(rule.name, rule.severity.value, rule.description) for rule in RULES]
