"""How many small faults of `pipeline/` and `db/` the tests notice.

    python -m scripts.line_coverage --suite both             # which test runs which line
    python -m scripts.seeded_faults --seed 1 --count 200 --suite both --jobs 2 --json faults.json
    python -m scripts.seeded_faults --shard 0/4 --json faults0.json      # a part of them, on another machine
    python -m scripts.seeded_faults --add faults0.json faults1.json      # one table of all parts

Each fault is put into a copy of the repository, where the tests run that the index names for its lines:
those of the nearest package first, the fast before the slow, until one fails. It counts only if it fails
again, alone, and passes without the fault. Tests that assert a time are left out, as other faults are tried
beside. At most `--tests` and `--budget` seconds of tests of a suite are run for a fault: what nobody noticed
is listed with how many of how many ran. With --json faults that the file already holds are not tried again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from scripts.fault_places import KINDS, PACKAGES, Fault, digests, pick
from scripts.selected_tests import SELECTION

ROOT = Path(__file__).parents[1]
SUITES = {"test": ("test",), "test-ci": ("test-ci",), "both": ("test", "test-ci")}
STARTED_BY = {
    "pipeline/contestant/": "pipeline/workers/client.py",
    "pipeline/sandbox/warden.py": "pipeline/sandbox/warden_tree.py",
    "pipeline/sandbox/sweeper.py": "pipeline/sandbox/sweeping.py",
}
"""Code that runs where nothing can be measured, and the file that starts it: its tests are taken."""
NOT_COPIED = (".git", ".venv", "*.egg-info", ".hypothesis", ".mypy_cache", ".ruff_cache", ".pytest_cache")
PYTEST = ("--hypothesis-seed=0", "-p", "no:cacheprovider")
UNNOTICED = ("unnoticed", "not covered")
COLUMNS = ("test", "test-ci", *UNNOTICED)


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


@dataclass
class Tried:
    """What came of a fault."""

    outcome: str
    """The suite that noticed it, `unnoticed`, or `not covered`."""
    by: str = ""
    """The test that noticed it; or that errors came in collecting, or the run was lost."""
    late: bool = False
    """Whether it was noticed since a test took too long."""
    ran: dict[str, int] = field(default_factory=dict)
    covering: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """How a run of chosen tests ended, as `scripts/selected_tests.py` writes it."""

    running: str = ""
    failed: str = ""
    late: bool = False
    passed: Sequence[str] = ()
    errors: bool = False
    wrong: str = ""
    """The test that failed, or during which the process was lost; `collecting` or `starting`."""


class Copy:
    """A copy of the repository with places of its own, in which one fault after the other is tried."""

    def __init__(self, place: Path, passing: dict[str, bool]) -> None:
        self._tree, self._home, self._temporary = place / "r", place / "h", place / "t"
        self._place = place
        self._passing = passing
        """Whether a test passes without a fault; of all copies."""
        shutil.copytree(ROOT, self._tree, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
        self._home.mkdir()

    def try_fault(
        self, fault: Fault, index: Index, suites: Sequence[str], options: argparse.Namespace
    ) -> Tried:
        """Runs the tests of one suite after the other, until one notices the fault."""
        tried = Tried("unnoticed")
        for suite in suites:
            tests, tried.covering[suite] = index.chosen(fault, suite, options)
            left = {name: options.patience + 10 * index.tests[name]["seconds"][suite] for name in tests}
            tried.ran[suite] = len(left)
            while left := {name: limit for name, limit in left.items() if self._passing.get(name, True)}:
                seen = self._run(left, suite, fault)
                if not seen.wrong:
                    break
                again = {seen.wrong: left[seen.wrong]} if seen.wrong in left else left
                if self._run(again, suite, fault).wrong and self._passes(again, suite):
                    tried.outcome, tried.by, tried.late = suite, seen.wrong, seen.late
                    return tried
                if seen.wrong not in left:  # none of these can be collected here, fault or not
                    break
                left = {name: limit for name, limit in left.items() if name not in {seen.wrong, *seen.passed}}
        if not any(tried.covering.values()):
            tried.outcome = "not covered"
        return tried

    def _passes(self, tests: dict[str, float], suite: str) -> bool:
        """Whether tests pass without the fault."""
        (name, *others) = tests
        if others:
            return not self._run(tests, suite, None).wrong
        if name not in self._passing:
            self._passing[name] = not self._run(tests, suite, None).wrong
        return self._passing[name]

    def _run(self, tests: dict[str, float], suite: str, fault: Fault | None) -> Seen:
        """Runs tests, each for so many seconds at most, with the fault or without one, until one fails."""
        for folder in (self._temporary, self._tree / ".hypothesis"):
            shutil.rmtree(folder, ignore_errors=True)
        self._temporary.mkdir(exist_ok=True)
        selection, result = self._place / "selection.json", self._place / "result.json"
        selection.write_text(json.dumps({"tests": tests, "to": str(result)}))
        result.unlink(missing_ok=True)
        names = dict.fromkeys(name.partition("::")[0] for name in tests)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "scripts.selected_tests",
            "-x",
            "-m",
            "",
            *PYTEST,
            *names,
        ]
        with self._changed(fault):
            process = subprocess.Popen(
                command,
                cwd=self._tree,
                env=self._environment(suite) | {SELECTION: str(selection)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                code = process.wait(60 + max(tests.values()) + sum(tests.values()) / 2)
            except subprocess.TimeoutExpired:
                code = None
            self._end_processes()
            process.wait()
        seen = Seen(**json.loads(result.read_text())) if result.exists() else Seen()
        if code == pytest.ExitCode.NO_TESTS_COLLECTED:
            return seen
        wrong = (
            seen.failed or seen.running or ("collecting" if seen.errors else "" if code == 0 else "starting")
        )
        return replace(seen, wrong=wrong, late=seen.late or code is None)

    @contextmanager
    def _changed(self, fault: Fault | None) -> Iterator[None]:
        """The fault's file has it meanwhile. Its time is another one, so that no compiled form of it fits."""
        if fault is None:
            yield
            return
        file = self._tree / fault.file
        source, times = file.read_bytes(), file.stat()
        file.write_text(fault.applied(source.decode()), encoding="utf-8")
        os.utime(file, (times.st_atime, times.st_mtime + 2))
        try:
            yield
        finally:
            file.write_bytes(source)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _environment(self, suite: str) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("KERNELPROOF_", "XDG_"))
        }
        kept |= {
            "HOME": str(self._home),
            "TMPDIR": str(self._temporary),
            "PYTHONPATH": str(self._tree / "src"),
        }
        kept |= {"PYTHONDONTWRITEBYTECODE": "1"} | ({"TEST_EXAMPLES": "quick"} if suite == "test" else {})
        return kept

    def _end_processes(self) -> None:
        """Kills what a run of this copy left: each process has one of its folders among its variables."""
        mark = str(self._place).encode() + b"/"
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if mark in (entry / "environ").read_bytes():
                        os.kill(int(entry.name), signal.SIGKILL)


def main() -> int:
    """Tries the faults, or adds up what was tried; prints the table and what nobody noticed."""
    options = parse()
    if options.add:
        parts = [json.loads(part.read_text()) for part in options.add]
        if len({(part["seed"], part["count"], part["suite"], *part["under"]) for part in parts}) > 1:
            print("these files are parts of different sets of faults", file=sys.stderr)
            return 2
        records = {_key(record): record for part in parts for record in part["faults"]}
        print(table(list(records.values())))
        return 0
    with gzip.open(options.index, "rt", encoding="utf-8") as file:
        index = Index(json.load(file))
    if changed := [name for name, digest in digests(ROOT).items() if index.digests.get(name) != digest]:
        print(
            f"{options.index} is of another source ({changed[0]}): run scripts.line_coverage", file=sys.stderr
        )
        return 2
    part, parts_count = map(int, options.shard.split("/"))
    chosen = pick(ROOT, options.seed, options.count, tuple(options.under))[part::parts_count]
    done = json.loads(options.json.read_text())["faults"] if options.json and options.json.exists() else []
    known = {_key(record) for record in done}
    print(
        table(try_all([fault for fault in chosen if _key(asdict(fault)) not in known], index, options, done))
    )
    return 0


def try_all(
    faults: list[Fault], index: Index, options: argparse.Namespace, done: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Tries each fault in one of the copies. Returns `done` with their records, and keeps it in a file."""
    lock, copies, passing = threading.Lock(), SimpleQueue[Copy](), dict[str, bool]()
    kept = {"seed": options.seed, "count": options.count, "suite": options.suite, "under": options.under}

    def one(fault: Fault) -> None:
        copy = copies.get()
        try:
            tried = copy.try_fault(fault, index, SUITES[options.suite], options)
        finally:
            copies.put(copy)
        with lock:
            done.append(asdict(fault) | asdict(tried))
            print(f"{len(done):4} {tried.outcome:11} {place_of(done[-1])} {tried.by}", flush=True)
            if options.json:
                new = options.json.with_suffix(".new")
                new.write_text(json.dumps({**kept, "faults": done}, indent=1))
                new.replace(options.json)

    temporary = tempfile.TemporaryDirectory(prefix="sf-", ignore_cleanup_errors=True)
    with temporary as place, ThreadPoolExecutor(options.jobs) as pool:
        for copy in pool.map(lambda n: Copy(Path(place) / str(n), passing), range(options.jobs)):
            copies.put(copy)
        list(pool.map(one, faults))
    return done


def _key(record: dict[str, Any]) -> tuple[str, int, str]:
    return record["file"], record["start"], record["after"]


def place_of(record: dict[str, Any]) -> str:
    """Where a fault is and what it changes, in one line."""
    before, after = (" ".join(record[name].split()) for name in ("before", "after"))
    return f"{record['file']}:{record['line']}: {before} -> {after}"


def table(records: list[dict[str, Any]]) -> str:
    """How many faults of each kind, and of each package, each suite noticed; and those that none did."""
    lines = [f"{'':24}" + "".join(f"{name:>13}" for name in (*COLUMNS, "late", "all"))]

    def row(name: str, some: list[dict[str, Any]]) -> None:
        counts = Counter(record["outcome"] for record in some)
        numbers = [*(counts[column] for column in COLUMNS), sum(record["late"] for record in some), len(some)]
        lines.append(f"{name:24}" + "".join(f"{number:13}" for number in numbers))

    for kind in KINDS:
        row(kind, [record for record in records if record["kind"] == kind])
    packages = defaultdict(list)
    for record in records:
        packages[
            "db" if record["file"].startswith("db/") else "/".join(record["file"].split("/")[:2])
        ].append(record)
    for package in sorted(packages):
        row(package, packages[package])
    row("all", records)
    lines += ["", "late: noticed since a test took too long; among the noticed.", ""]
    for record in sorted(records, key=_key):
        if record["outcome"] in UNNOTICED:
            ran = ", ".join(
                f"{record['ran'][suite]} of {count} covering tests of make {suite}"
                for suite, count in record["covering"].items()
            )
            lines.append(f"{record['outcome']}: {place_of(record)} (survived {ran})")
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--suite", choices=SUITES, default="test")
    parser.add_argument("--under", nargs="+", default=list(PACKAGES), help="only faults in these folders")
    parser.add_argument("--shard", default="0/1", metavar="I/N", help="only each Nth fault, from the Ith on")
    parser.add_argument("--jobs", type=int, default=1, help="faults tried at the same time")
    parser.add_argument("--tests", type=int, default=300, help="most tests of a suite for a fault")
    parser.add_argument(
        "--budget", type=float, default=60.0, help="most seconds of tests of a suite for a fault"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=30.0,
        help="seconds that a test may take beside ten times as long as when it was measured",
    )
    parser.add_argument("--index", type=Path, default=ROOT / "generated" / "line-index.json.gz")
    parser.add_argument("--json", type=Path, help="where to keep the results")
    parser.add_argument(
        "--add", type=Path, nargs="+", metavar="FILE", help="print one table of these results"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
