"""docs/reference/leaderboard.md says what the columns of exports are."""

from __future__ import annotations

from pathlib import Path

from kernelproof.report.board_columns import COMPARED, FIELDS, document

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "leaderboard.md"


def test_the_page_is_the_one_the_program_writes() -> None:
    assert PAGE.read_text() == document(), (
        "run: python -m kernelproof.report.board_columns > docs/reference/leaderboard.md"
    )


def test_no_view_has_a_name_twice() -> None:
    for fields in (*FIELDS.values(), COMPARED):
        names = [field.name for field in fields]
        assert len(names) == len(set(names))
