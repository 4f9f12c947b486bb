"""docs/charts.md shows the tables that there are, and how they refer to each other."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Column

from kernelproof.db.models import Base, Batch, Lease, ServerBatch

PAGE = Path(__file__).parents[2] / "docs" / "charts.md"
RELATION = re.compile(r"^ {4}(\w+) (\S+) (\w+) : (\w+)$", re.MULTILINE)


def chart() -> str:
    """The text of the page's one entity-relationship diagram."""
    (found,) = re.findall(r"^```mermaid\nerDiagram\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(found)


def cardinality(column: Column[object]) -> str:
    """Mermaid's sign between a table and the one whose `column` refers to it.

    Left: exactly one row, or none where the column may be NULL. Right: any number of rows, or at most one
    where the column alone is the primary key.
    """
    alone = [column] == list(column.table.primary_key.columns)
    return f"{'|o' if column.nullable else '||'}--{'o|' if alone else 'o{'}"


def references() -> list[tuple[str, ...]]:
    """Each foreign key as the chart writes it: table referred to, sign, table that refers, column."""
    columns = [column for table in Base.metadata.sorted_tables for column in table.columns]
    return [
        (key.column.table.name, cardinality(column), column.table.name, column.name)
        for column in columns
        for key in column.foreign_keys
    ]


def test_every_line_of_the_chart_is_a_relation() -> None:
    assert len(RELATION.findall(chart())) == len(chart().splitlines())


def test_the_chart_has_the_tables_there_are() -> None:
    shown = {name for left, _, right, _ in RELATION.findall(chart()) for name in (left, right)}
    assert shown == set(Base.metadata.tables) - {
        Lease.__tablename__,
        Batch.__tablename__,
        ServerBatch.__tablename__,
        *(
            "score_facts",
            "hash_chain",
            "callers",
            "workers",
            "gpus",
            "current_policy",
        ),  # no foreign key
    }


def test_the_chart_has_the_foreign_keys_there_are() -> None:
    assert sorted(RELATION.findall(chart())) == sorted(references())
