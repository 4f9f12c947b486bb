"""The corpus's confusion table of a run of pytest, whichever of its processes judged the members."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

import pytest

from tests.referee.corpus import Confusion

OUTPUT = "confusion"
"""The name under which a worker of pytest-xdist hands its table to the process that prints."""


class Table:
    """A plugin of pytest: every verdict on a member of the corpus so far."""

    def __init__(self) -> None:
        self.confusion = Confusion()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a worker: hands over what was judged here."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[OUTPUT] = packed(self.confusion)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """In the process that prints: adds what a worker judged. A worker that crashed has no output."""
        told = getattr(node, "workeroutput", {}).get(OUTPUT)
        if told is not None:
            add(self.confusion, unpacked(told))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints the table, if there is anything in it."""
        if self.confusion.table:
            terminalreporter.section("corpus: kind of candidate against status")
            for line in self.confusion.lines():
                terminalreporter.line(line)


TABLE = pytest.StashKey[Table]()
"""Where the configuration of pytest keeps it."""


def packed(confusion: Confusion) -> str:
    """A confusion as JSON: workers can hand over nothing but simple values."""
    return json.dumps(asdict(confusion) | {"table": [[*key, n] for key, n in confusion.table.items()]})


def unpacked(text: str) -> Confusion:
    """What `packed` made."""
    told = json.loads(text)
    return Confusion(
        table=Counter({(kind, status): number for kind, status, number in told["table"]}),
        accepted=told["accepted"],
        refused=told["refused"],
        misses=[(member, why) for member, why in told["misses"]],
    )


def add(total: Confusion, more: Confusion) -> None:
    """Counts in `total` what `more` has counted."""
    total.table.update(more.table)
    total.accepted += more.accepted
    total.refused += more.refused
    total.misses += more.misses
