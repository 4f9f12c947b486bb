"""The page on capacity: its arithmetic gives what it prints, from rates that its sources name."""

from __future__ import annotations

import re
import subprocess
import sys
from math import ceil
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGE = (GUIDE / "capacity.md").read_text()


def rows() -> dict[str, tuple[str, list[str]]]:
    """The rate of each row, and the pages that its source links to."""
    found = {}
    for line in re.findall(r"^\| [A-H] \| .*$", PAGE.split("## A million a day")[0], re.M):
        letter, _, _, rate, source = (cell.strip() for cell in line.strip("|").split("|"))
        found[letter] = rate, re.findall(r"\]\(([^)#]+)", source)
    return found


def test_every_rate_stands_on_the_page_that_its_row_names() -> None:
    named = rows()
    assert len(named) == 8
    first = named["A"][1]
    for rate, pages in named.values():
        texts = [(GUIDE / page).read_text().replace(",", "") for page in pages or first]
        assert any(rate.replace(",", "") in text for text in texts), rate


def test_the_program_prints_what_stands_below_it() -> None:
    program, printed = re.findall(r"```(?:python)?\n(.+?)```", PAGE, re.S)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == printed


def test_the_other_rows_follow_from_their_rates() -> None:
    table = re.findall(r"^\| ([A-H]) \| (\d+) \| [^|]*\|$", PAGE.split("By the other rows")[1], re.M)
    assert len(table) == 4
    for letter, gpus in table:
        assert int(gpus) == ceil(1_000_000 / 24 / int(rows()[letter][0].replace(",", "")))
