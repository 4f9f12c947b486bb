"""docs/rationale/extraction.md names every warning, with its meaning, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from kernelproof.extraction import WARNINGS

PAGE = Path(__file__).parents[2] / "docs" / "rationale" / "extraction.md"


def test_the_page_lists_the_warnings() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == WARNINGS
