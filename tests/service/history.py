"""The history of the evaluations as the database saw it: a trigger notes each change of their states.

The history is independent of the counters that daemons keep, and both are compared.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

WAITING, TAKEN = ("queued", "built"), ("building", "running")
_COLUMNS = "evaluation, was, became, token, losses, before"
_TRIGGER = f"""
CREATE TABLE history ({_COLUMNS});
CREATE INDEX history_evaluation ON history (evaluation, token);
CREATE TRIGGER history_of_states AFTER UPDATE ON evaluations WHEN old.state != new.state BEGIN
    INSERT INTO history VALUES (new.id, old.state, new.state, new.token, new.losses, old.losses);
END;
"""


class History:
    """The history of a database file, from `begin` to `end`."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def begin(self) -> None:
        """Has the database note what happens from now on."""
        with closing(sqlite3.connect(self._place, timeout=60)) as connection:
            connection.executescript(_TRIGGER)

    def end(self) -> tuple[Counter[str], list[str]]:
        """How many changes there were of each kind, and what is wrong. The history is removed."""
        with closing(sqlite3.connect(self._place, timeout=60)) as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM history ORDER BY rowid").fetchall()
            books = connection.execute(
                "SELECT id, state, token, losses, attempt_id FROM evaluations"
            ).fetchall()
            connection.executescript("DROP TRIGGER history_of_states; DROP TABLE history")
        seen, wrong = Counter[str](), list[str]()
        tokens, lost, ends = Counter[str](), set[tuple[str, int]](), dict[str, int]()
        for number, was, became, token, losses, before in rows:
            kind = _kind(was, became, losses - before)
            seen[kind] += 1
            if number in ends:
                wrong.append(f"{number} changed after its end: {was} to {became}")
            if kind == "takings":
                tokens[number] += 1
            elif losses > before:
                lost.add((number, token))
            if token != tokens[number]:
                wrong.append(f"{number} has token {token} after {tokens[number]} takings")
            if kind == "verdicts" and (number, token) in lost:
                wrong.append(f"{number} has a verdict with token {token}, whose lease was lost")
            if became not in (*WAITING, *TAKEN):
                ends[number] = token
        for number, state, token, losses, _ in books:
            if ends.get(number) != token:
                wrong.append(
                    f"{number} is {state} with token {token}, and its end came with {ends.get(number)}"
                )
            if losses != sum(one == number for one, _ in lost):
                wrong.append(f"{number} counts {losses} losses")
        attempts = [attempt for *_, attempt in books if attempt is not None]
        if len(set(attempts)) != len(books):
            wrong.append(f"{len(books)} evaluations have {len(set(attempts))} results")
        if seen["takings"] != sum(seen[kind] for kind in seen if kind != "takings"):
            wrong.append(f"the takings are not the sum of what became of them: {dict(seen)}")
        return seen, wrong


def _kind(was: str, became: str, losses: int) -> str:
    """The name of a change. Each taking has to be followed by one of the others."""
    if became in TAKEN and was in WAITING:
        return "takings"
    if was not in TAKEN:
        return "other"
    if losses:
        return "losses"
    if became == "done":
        return "verdicts"
    if (was, became) == ("building", "built"):
        return "builds"
    if became in WAITING:
        return "given back"
    return "other"
