"""docs/reference/schema.md says what the tables are."""

from __future__ import annotations

from pathlib import Path

from kernelproof.db.documentation import schema_markdown

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "schema.md"


def test_the_page_is_the_one_the_tables_write() -> None:
    assert PAGE.read_text() == schema_markdown(), (
        "run: python -m kernelproof.db.documentation > docs/reference/schema.md"
    )
