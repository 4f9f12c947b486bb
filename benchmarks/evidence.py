"""What the benchmarks that gather evidence share: parts of the work, a time budget, results to go on from.

Results are one JSON file: the options, the environment, and a record for each piece of work, written after
every one of them. Run again with the same options, a benchmark goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

Record = dict[str, Any]
Item = TypeVar("Item")

FREE = (
    *("share", "seconds_budget", "json", "fresh", "threads"),
    *("problems", "select", "levels", "repeats", "kinds", "least_us", "plan", "jobs", "list", "add", "cores"),
)
"""Options that decide how much is done, not what a record means: they may change when a run is resumed."""


@dataclass(frozen=True)
class Share:
    """The `index`-th of `count` parts of a list of work."""

    index: int
    count: int

    def of(self, items: Sequence[Item]) -> list[Item]:
        """Every `count`-th item."""
        return list(items[self.index :: self.count])


class Budget:
    """Seconds that may be spent. Work is not begun that would, by what was seen, take longer than is left."""

    def __init__(self, seconds: float | None) -> None:
        self._until = None if seconds is None else time.monotonic() + seconds
        self._spent: list[float] = []

    def allows_another(self) -> bool:
        """Whether one more piece of work ends in time that takes as long as the longest of the last ten."""
        if self._until is None:
            return True
        return time.monotonic() + max(self._spent[-10:], default=0.0) < self._until

    def note(self, seconds: float) -> None:
        """A piece of work took this long."""
        self._spent.append(seconds)


@dataclass
class Book:
    """The result file of one process."""

    path: Path
    benchmark: str
    options: dict[str, Any]
    environment: dict[str, Any] | None = None
    left: int | None = None
    """Pieces of work that were not done; None before the end."""
    records: list[Record] = field(default_factory=list)

    @classmethod
    def open(cls, options: argparse.Namespace, benchmark: str) -> Book:
        """The file that `--json` names, with what an earlier run with the same options left there.

        Exits with a message when the file holds another run's results and `--fresh` is not given.
        """
        path: Path = options.json
        deciding = {k: _plain(v) for k, v in vars(options).items() if k not in FREE}
        book = cls(path, benchmark, deciding)
        if path.exists() and not options.fresh:
            found = json.loads(path.read_text())
            if (found["benchmark"], found["options"]) != (benchmark, deciding):
                raise SystemExit(f"{path} holds results of other options; use --fresh or another --json")
            book.records, book.environment = found["records"], found["environment"]
            print(f"{path}: {len(book.records)} records are there already")
        return book

    def add(self, record: Record) -> None:
        """Keeps a record, in the file too."""
        self.records.append(record)
        self.write()

    def write(self) -> None:
        """Whole or not at all: a killed run leaves a readable file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        whole = {name: value for name, value in vars(self).items() if name != "path"}
        partial.write_text(json.dumps(whole, indent=1) + "\n")
        partial.replace(self.path)


def merged(paths: Iterable[Path]) -> dict[str, Any]:
    """One result of several processes' files: records one after another, each once, `left` added up."""
    parts = [json.loads(path.read_text()) for path in paths]
    lefts = [part["left"] for part in parts]
    records = {json.dumps(record): record for part in parts for record in part["records"]}
    return {
        "benchmark": parts[0]["benchmark"],
        "options": parts[0]["options"],
        "environment": parts[0]["environment"],
        "environments": [part["environment"] for part in parts],
        "left": None if None in lefts else sum(lefts),
        "records": [*records.values()],
    }


def parser(description: str | None, json_file: str) -> argparse.ArgumentParser:
    """A parser with the options that all of these benchmarks take."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--share", type=_share, default=Share(0, 1), metavar="I/N", help="the I-th of N parts")
    made.add_argument("--seconds-budget", type=float, help="stop in good order before this is used up")
    made.add_argument("--json", type=Path, default=Path("generated/benchmarks") / json_file)
    made.add_argument("--fresh", action="store_true", help="forget what --json holds")
    return made


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as they need to be, the first one to the left, the others to the right."""
    lines = [tuple(map(str, row)) for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    )


def _share(text: str) -> Share:
    index, count = (int(part) for part in text.split("/"))
    if not 0 <= index < count:
        raise argparse.ArgumentTypeError("the first share of three is 0/3")
    return Share(index, count)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, int | float | None) else str(value)
