"""Which lines of `pipeline/` and `db/` the tests run, subprocesses included, and which test runs which.

    python -m scripts.line_coverage                          # the tests of `make test`
    python -m scripts.line_coverage --suite both             # those of `make test-ci`, too
    python -m scripts.line_coverage --index index.json.gz -- tests/db tests/extraction

Prints the lines covered of each package, and writes an index for `scripts/seeded_faults.py`. Tests fail where
measuring makes them too slow: they are named, and counted as covering what they ran.

Code that runs in the sandbox cannot be measured, since nothing can be written there: `IN_SANDBOX` is left out
of the total.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import operator
import os
import shlex
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from scripts import coverage_start
from scripts.fault_places import digests, source_files
from scripts.line_index import STARTED_BY

ROOT = Path(__file__).parents[1]
IN_SANDBOX = tuple(STARTED_BY)
SUITES = {"test": ("test",), "test-ci": ("test-ci",), "both": ("test", "test-ci")}


def main() -> int:
    """Runs the tests, prints the table, writes the index. Exit code 1 where no line was measured."""
    arguments = parse()
    try:
        import coverage  # noqa: F401
    except ImportError:
        print("coverage.py is missing: pip install 'coverage>=7.6'", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="lines-") as place, started_everywhere(Path(place)):
        for suite in SUITES[arguments.suite]:
            run_tests(Path(place), suite, arguments.jobs, arguments.pytest)
        index = read(Path(place))
        if not index["lines"]:
            print("no line was measured", file=sys.stderr)
            return 1
        print(table(Path(place), index))
    if failed := [name for name, test in index["tests"].items() if not test["passed"]]:
        print(
            f"\n{len(failed)} tests failed, among them those that measuring makes too slow:",
            *failed,
            sep="\n  ",
        )
    arguments.index.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(arguments.index, "wt", encoding="utf-8") as file:
        json.dump(index, file)
    print(f"\n{len(index['tests'])} tests, index: {arguments.index}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--suite", choices=SUITES, default="test")
    parser.add_argument("--jobs", type=int, default=3, help="processes of pytest")
    parser.add_argument("--index", type=Path, default=ROOT / "generated" / "line-index.json.gz")
    parser.add_argument("pytest", nargs="*", metavar="PATH", help="only the tests below these paths")
    return parser.parse_args()


@contextmanager
def started_everywhere(run: Path) -> Iterator[None]:
    """Meanwhile each process of this Python that descends from this one measures itself."""
    for name in ("current", "data", "tests"):
        (run / name).mkdir()
    (run / "current" / str(os.getpid())).write_text("")
    file = str(coverage_start.__file__)
    code = f"g = dict(__file__={file!r}, __name__='coverage_start'); exec(open(g['__file__']).read(), g)"
    code += f"; g['begin'](g['Path']({str(run)!r}))"
    # The last to be read: coverage.py may lie in a folder that another such file adds.
    pth = Path(sysconfig.get_paths()["purelib"]) / f"zz-{run.name}.pth"
    pth.write_text(f"import os; os.access({str(run / 'data')!r}, os.W_OK) and exec({code!r})\n")
    try:
        yield
    finally:
        pth.unlink()


def run_tests(run: Path, suite: str, jobs: int, paths: list[str]) -> None:
    """Runs a target of the Makefile, without its checks of style and types."""
    pytest = shlex.join([sys.executable, "-m", "pytest", "-p", "scripts.coverage_start", *paths])
    command = ["make", "-i", "-o", "lint", "-o", ".venv/test.installed", suite, f"PYTEST={pytest}"]
    command += [f"TEST_WORKERS={jobs}", *(["CLOCKED="] if paths else [])]
    environment = {**os.environ, coverage_start.RUN: str(run), "LINE_COVERAGE_SUITE": suite}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def read(run: Path) -> dict[str, Any]:
    """The index. `lines`: for each file the sets of lines, a bit for each in hexadecimal, and who ran them.

    `tests` has for each test its seconds by suite, the wider fixtures that it uses (they own lines, too),
    whether it passed, and whether it asserts a time.
    """
    tests: dict[str, dict[str, Any]] = {}
    for part in sorted((run / "tests").iterdir()):
        for name, test in json.loads(part.read_text()).items():
            known = tests.setdefault(name, test)
            known["seconds"] |= test["seconds"]
            known["passed"] &= test["passed"]
    lines: dict[tuple[str, str], int] = defaultdict(int)
    query = (
        "select path, context, numbits from line_bits"
        " join file on file.id = file_id join context on context.id = context_id"
    )
    for part in (run / "data").iterdir():
        with closing(sqlite3.connect(part)) as database, suppress(sqlite3.DatabaseError):
            # A process that was killed while it wrote left half a file: its lines are lost.
            for path, context, bits in database.execute(query):
                lines[Path(path).relative_to(ROOT).as_posix(), context] |= int.from_bytes(bits, "little")
    names = sorted({context for _, context in lines})
    numbers = {name: number for number, name in enumerate(names)}
    files: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (file, context), bits in sorted(lines.items()):
        files[file][f"{bits:x}"].append(numbers[context])
    return {"names": names, "tests": tests, "lines": files, "digests": digests(ROOT)}


def table(run: Path, index: dict[str, Any]) -> str:
    """The statements of each package, and how many were run. `run`: where data of coverage.py may lie."""
    from coverage import Coverage, CoverageData

    data = CoverageData(str(run / "all"))
    for file, sets in index["lines"].items():
        bits = functools.reduce(operator.or_, (int(each, 16) for each in sets))
        data.add_lines({str(ROOT / file): [line for line in range(bits.bit_length()) if bits >> line & 1]})
    data.write()
    coverage = Coverage(data_file=str(run / "all"), config_file=False)
    coverage.load()
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for file in source_files(ROOT):
        _, statements, _, missing, _ = coverage.analysis2(str(ROOT / file))
        package = "/".join(file.split("/")[: 2 if file.startswith("pipeline/") else 1])
        for name in (f"{package} (sandbox)",) if file.startswith(IN_SANDBOX) else (package, "total"):
            counts[name][0] += len(statements)
            counts[name][1] += len(statements) - len(missing)
    rows = sorted(counts.items(), key=lambda row: (row[0] == "total", row))
    width = max(map(len, counts))
    return "\n".join(
        f"{name:{width}} {ran:6} of {all_:6} {100 * ran / max(1, all_):6.1f} %" for name, (all_, ran) in rows
    )


if __name__ == "__main__":
    sys.exit(main())
