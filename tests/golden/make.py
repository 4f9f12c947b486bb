"""Makes golden files anew: `python -m tests.golden.make names shapes`. Without words it lists them.

`database` runs every command that stores something, which takes minutes. `answers` and `shapes` follow from
it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.conftest import working_in
from tests.cli.program import Program
from tests.golden import answers, database, keys, names, shapes
from tests.golden.loading import save, workspace


@contextmanager
def _program() -> Iterator[Program]:
    """The program in a workspace with a copy of the golden database."""
    with tempfile.TemporaryDirectory() as folder:
        place = workspace(Path(folder) / "workspace")
        with working_in(place, Path(folder) / "cache") as program:
            yield program


def _of_the_code(parts: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    return {name: collect() for name, collect in parts.items()}


def _of_the_database(parts: Mapping[str, Callable[[Program], Any]]) -> dict[str, Any]:
    found = {}
    for name, collect in parts.items():
        with _program() as program:
            found[name] = collect(program)
    return found


MAKERS: dict[str, Callable[[], None]] = {
    "answers": lambda: save("answers.json", _of_the_database(answers.PARTS)),
    "database": database.make,
    "keys": lambda: save("keys.json", _of_the_code(keys.PARTS)),
    "names": lambda: save("names.json", _of_the_code(names.PARTS)),
    "shapes": lambda: save("shapes.json", _of_the_database(shapes.PARTS)),
}


def main() -> int:
    """Exit code 2 for a word that is none of ours."""
    words = sys.argv[1:]
    if not words or not set(words) <= set(MAKERS):
        print(f"{__doc__}\nThere are: {', '.join(MAKERS)}", file=sys.stderr)
        return 2
    for word in words:
        MAKERS[word]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
