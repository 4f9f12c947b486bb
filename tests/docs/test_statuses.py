"""docs/reference/statuses.md lists the statuses as the program has them, and says of each what causes it."""

from __future__ import annotations

import re
from pathlib import Path

from kernelproof.types import Determinism, ErrorClass, Flag, Status

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "statuses.md"


def test_the_table_is_the_enumeration() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (yes|no) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)

    assert rows == [
        (status.value, status.stage.value, "yes" if status.counts_against_model else "no", status.meaning)
        for status in Status
    ]


def test_every_status_has_an_example() -> None:
    examples = PAGE.read_text().partition("## Causes")[2]
    rows = re.findall(r"^\| `(\w+)` \| .+ \|$", examples, re.MULTILINE)

    assert rows == [status.value for status in Status]


def test_every_flag_and_error_class_is_explained() -> None:
    section = PAGE.read_text().partition("## Facts about a correct candidate")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| (.+) \|$", section, re.MULTILINE)

    assert [word for word, _ in rows] == [*Flag, *ErrorClass]
    assert all(meaning.startswith(flag.meaning) for (_, meaning), flag in zip(rows, Flag, strict=False))
    assert all(f"`{word}`" in section for word in Determinism)
