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
import functools
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from scripts.fault_places import KINDS, PACKAGES, Fault, digests, pick
from scripts.line_index import Index
from scripts.selected_tests import SELECTION

ROOT = Path(__file__).parents[1]
SUITES = {"test": ("test",), "test-ci": ("test-ci",), "both": ("test", "test-ci")}
NOT_COPIED = (".git", ".venv", "*.egg-info", ".hypothesis", ".mypy_cache", ".ruff_cache", ".pytest_cache")
PYTEST = ("-p", "scripts.selected_tests", "-x", "-m", "", "--hypothesis-seed=0", "-p", "no:cacheprovider")
UNNOTICED = ("unnoticed", "not covered")
COLUMNS = ("test", "test-ci", *UNNOTICED)


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
    """The test that failed, or during which the process was lost; `collecting`; or `the run`."""


def _not_copied(folder: str, names: list[str]) -> set[str]:
    """No data of the user's: only files that a clone has, or nearly so."""
    if Path(folder) == ROOT / "generated":
        return set(names) - {"README.md"}
    return shutil.ignore_patterns(*NOT_COPIED)(folder, names)


def shares(jobs: int) -> list[list[int]]:
    """The cores of each job, two at least, so that no test takes all that there are."""
    cores = sorted(os.sched_getaffinity(0))
    width = min(len(cores), max(2, len(cores) // jobs))
    return [[cores[(job * len(cores) // jobs + n) % len(cores)] for n in range(width)] for job in range(jobs)]


class Copy:
    """A copy of the repository with places of its own, in which one fault after the other is tried."""

    def __init__(self, place: Path, cores: list[int], passing: dict[str, bool]) -> None:
        self._tree, self._home, self._temporary = place / "r", place / "h", place / "t"
        self._place = place
        self._cores = cores
        self._passing = passing
        """Whether a test passes without a fault; of all copies."""
        shutil.copytree(ROOT, self._tree, symlinks=True, ignore=_not_copied)
        self._home.mkdir()

    def try_fault(
        self, fault: Fault, index: Index, suites: Sequence[str], options: argparse.Namespace
    ) -> Tried:
        """Runs the tests of one suite after the other, until one notices the fault."""
        tried = Tried("unnoticed")
        for suite in suites:
            tests, tried.covering[suite] = index.chosen(fault, suite, options)
            seconds = {name: index.tests[name]["seconds"][suite] for name in tests}
            run = functools.partial(self._run, suite=suite, patience=options.patience)
            while seconds := {name: most for name, most in seconds.items() if self._passing.get(name, True)}:
                seen = run(seconds, fault)
                if not seen.wrong:
                    break
                alone = {seen.wrong: seconds[seen.wrong]} if seen.wrong in seconds else seconds
                if self._passes(alone, run) and run(alone, fault).wrong:
                    tried.outcome, tried.by, tried.late = suite, seen.wrong, seen.late
                    return tried
                if alone is seconds:  # they cannot be collected here, fault or not
                    break
                done = {seen.wrong, *seen.passed}
                seconds = {name: most for name, most in seconds.items() if name not in done}
            tried.ran[suite] = sum(self._passing.get(name, True) for name in tests)
        if not any(tried.covering.values()):
            tried.outcome = "not covered"
        return tried

    def _passes(self, tests: dict[str, float], run: Callable[[dict[str, float], Fault | None], Seen]) -> bool:
        """Whether tests pass without the fault."""
        if len(tests) > 1:
            return not run(tests, None).wrong
        (name,) = tests
        if name not in self._passing:
            self._passing[name] = not run(tests, None).wrong
        return self._passing[name]

    def _run(self, tests: dict[str, float], fault: Fault | None, suite: str, patience: float) -> Seen:
        """Runs tests, in the order of these seconds, with the fault or without one, until one fails."""
        for folder in (self._temporary, self._tree / ".hypothesis"):
            shutil.rmtree(folder, ignore_errors=True)
        self._temporary.mkdir(exist_ok=True)
        selection, result = self._place / "selection.json", self._place / "result.json"
        limits = {name: patience + 10 * seconds for name, seconds in tests.items()}
        selection.write_text(json.dumps({"tests": limits, "to": str(result)}))
        result.unlink(missing_ok=True)
        files = dict.fromkeys(name.partition("::")[0] for name in tests)
        with self._changed(fault):
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *PYTEST, *files],
                cwd=self._tree,
                env=self._environment(suite) | {SELECTION: str(selection)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            os.sched_setaffinity(process.pid, self._cores)
            code = None
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(60 + max(limits.values()) + 3 * sum(tests.values()))
            self._end_processes()
            process.wait()
        seen = Seen(**json.loads(result.read_text())) if result.exists() else Seen()
        if code == pytest.ExitCode.NO_TESTS_COLLECTED:
            return seen
        otherwise = "collecting" if seen.errors else "the run" if code else ""
        late = seen.late or code is None
        return replace(
            seen, wrong=seen.failed or seen.running or ("the run" if late else otherwise), late=late
        )

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
        foreign = ("KERNELPROOF_", "XDG_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        kept |= {"HOME": str(self._home), "TMPDIR": str(self._temporary)}
        kept |= {"PYTHONPATH": str(self._tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        return kept | ({"TEST_EXAMPLES": "quick"} if suite == "test" else {})

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
    part, parts_count = map(int, options.shard.split("/"))
    chosen = pick(ROOT, options.seed, options.count, tuple(options.under))[part::parts_count]
    current = digests(ROOT)
    if changed := {fault.file for fault in chosen if index.digests.get(fault.file) != current[fault.file]}:
        print(
            f"{options.index} has other lines of {min(changed)}: run scripts.line_coverage", file=sys.stderr
        )
        return 2
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
        places = (Path(place) / str(job) for job in range(options.jobs))
        for copy in pool.map(Copy, places, shares(options.jobs), [passing] * options.jobs):
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
