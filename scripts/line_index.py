"""Which test runs which line: what `scripts/line_coverage.py` writes and `scripts/seeded_faults.py` reads."""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from typing import Any

from scripts.fault_places import Fault

STARTED_BY = {
    "pipeline/verifier/contestant/": "pipeline/verifier/workers/client.py",
    "pipeline/verifier/sandbox/warden.py": "pipeline/verifier/sandbox/warden_tree.py",
    "pipeline/verifier/sandbox/sweeper.py": "pipeline/verifier/sandbox/bwrap.py",
}
"""Code that runs where nothing can be measured, and the file that starts it: its tests are taken."""


class Index:
    """Which test runs which line, as `scripts/line_coverage.py` wrote it."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.tests: dict[str, dict[str, Any]] = content["tests"]
        self.digests: dict[str, str] = content["digests"]
        self._names: list[str] = content["names"]
        self._lines: dict[str, dict[str, list[int]]] = content["lines"]
        self._users: dict[str, list[str]] = defaultdict(list)
        for name, test in self.tests.items():
            for fixture in test["fixtures"]:
                self._users[fixture].append(name)

    def covering(self, fault: Fault) -> set[str]:
        """The tests that run a fault's statement, or any of its file if that runs at import or sandboxed."""
        started = [by for part, by in STARTED_BY.items() if fault.file.startswith(part)]
        file = started[0] if started else fault.file
        wanted = ((1 << (fault.last_line - fault.line + 1)) - 1) << fault.line
        whole = bool(started) or not fault.in_function
        owners = {
            self._names[number]
            for bits, numbers in self._lines.get(file, {}).items()
            if whole or int(bits, 16) & wanted
            for number in numbers
        }
        return {
            test
            for owner in owners
            for test in self._users.get(owner, [owner] if owner in self.tests else [])
        }

    def chosen(self, fault: Fault, suite: str, options: argparse.Namespace) -> tuple[list[str], int]:
        """Tests of a suite to try, in order, and how many cover the fault."""
        covering = self.covering(fault)
        if not covering and not fault.in_function:  # only constants: nothing of the file runs in a test
            covering = {name for name in self.tests if name.startswith(f"tests/{nearest(fault.file)}")}
        usable = {
            name: self.tests[name]["seconds"][suite]
            for name in covering
            if suite in self.tests[name]["seconds"] and not self.tests[name]["clock"]
        }
        near = f"tests/{nearest(fault.file)}"
        order = sorted(usable, key=lambda name: (not name.startswith(near), usable[name], name))
        quick = order[: options.tests * 2 // 3]
        rest = order[len(quick) :]
        draw = random.Random(f"{options.seed} {fault.file} {fault.line}")
        drawn = draw.sample(rest, min(len(rest), options.tests - len(quick)))
        taken: list[str] = []
        seconds = 0.0
        for name in [*quick, *sorted(drawn, key=usable.__getitem__)]:
            if not taken or seconds + usable[name] <= options.budget:
                taken.append(name)
                seconds += usable[name]
        return taken, len(usable)


def nearest(file: str) -> str:
    """The folder of tests of a file: `db/store.py` has `db`, `pipeline/runs/batch.py` has `runs`."""
    parts = file.removesuffix(".py").split("/")
    return parts[1] if parts[0] == "pipeline" else parts[0]
