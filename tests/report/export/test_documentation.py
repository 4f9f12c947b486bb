"""docs/reference/export.md says what exports hold."""

from __future__ import annotations

from pathlib import Path

from kernelproof.report.export.columns import FIELDS
from kernelproof.report.export.documentation import document

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "export.md"


def test_the_page_is_the_one_the_program_writes() -> None:
    assert PAGE.read_text() == document(), (
        "run: python -m kernelproof.report.export.documentation > docs/reference/export.md"
    )


def test_no_column_is_there_twice() -> None:
    names = [field.name for field in FIELDS]
    assert len(names) == len(set(names))
