"""Attempts whose verifications are all of another policy than this program's."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from sqlalchemy import Connection

from kernelproof.db.scores.filters import Filters, policy_passes
from kernelproof.db.scores.layout import steps
from kernelproof.db.scores.reading import read_book


def stale_attempts(connection: Connection, filters: Filters) -> dict[int, list[int]]:
    """Run to its attempts without a verification under the policy that the filters ask for; oldest first.

    Of the filters only those on runs and problems are asked.
    """
    book = read_book(connection, filters)
    rows = book.rows
    current = np.array([policy_passes(each, filters) for each in book.facts], bool)[rows["facts"]]
    attempt = steps(rows["attempt"])
    stale = np.bincount(attempt, weights=current) == 0
    found: defaultdict[int, list[int]] = defaultdict(list)
    old = rows.only(stale[attempt])
    for run, number in zip(old["run"].tolist(), old["attempt"].tolist(), strict=True):
        if number not in found[run][-1:]:
            found[run].append(number)
    return dict(found)
