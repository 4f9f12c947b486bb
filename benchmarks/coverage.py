"""How often the reported interval holds the truth: ``python -m benchmarks.coverage``.

Three kinds of candidates, whose speedup is known by construction:

aa    the reference against itself: 1
slow  a forward that calls the reference 34 times, against one that calls it 33 times: 3 % slower
fast  10 times against 11 times: 10 % faster

The first of many calls in a row may cost more than the others, which find their inputs in the cache. So
the truth of `slow` and `fast` is taken from measured times: with c of a single call (from aa) and T of k
calls, each further call takes w = (T - c) / (k - 1), and m calls take T + (m - k) w. Where aa was not run it
is k / m. All these candidates are honest and right: one that is refused is listed and counted too.

Measures; asserts nothing. Problems whose call takes less than --least-us are left out of the totals.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.evidence import Book, Budget, Record, parser, table
from kernelproof import backends
from kernelproof.errors import KernelproofError
from kernelproof.hashing import sha256_text
from kernelproof.problems import open_suite
from kernelproof.runs.sizes import choose_size
from kernelproof.types import Measurement, Problem, Rigor, Status, VerifySettings
from kernelproof.verifier.devices.discovery import default_backend
from kernelproof.verifier.engine.engine import Engine


@dataclass(frozen=True)
class Kind:
    """How often the reference is called in one forward: of the problem, and of the candidate."""

    baseline: int
    candidate: int

    @property
    def nominal(self) -> float:
        """The speedup, if every call takes as long as the others."""
        return self.baseline / self.candidate


KINDS = {"aa": Kind(1, 1), "slow": Kind(33, 34), "fast": Kind(11, 10)}
PACES = ("faster", "same", "slower", "unresolved")
COLUMNS = ("problem", "kind", "n", "ms", "truth", "median", "covered", *PACES, "±%", "aa%", "s", "dist.")
TOTALS = ("kind", "verified", "problems", "refused", "covered", *PACES)
LEAST_US = 50.0
LONGEST_MS = 50.0
"""No forward is built that would take longer."""


def repeated(problem: Problem, kind: Kind) -> tuple[Problem, str]:
    """A problem whose forward calls that of `problem` several times, and a candidate for it."""
    if kind.baseline == kind.candidate == 1:
        return problem, f"{problem.source}\n\nModelNew = Model\n"
    again = f"""

_Once = Model


class Model(_Once):
    def forward(self, *inputs):
        for _ in range({kind.baseline - 1}):
            super().forward(*inputs)
        return super().forward(*inputs)
"""
    source = problem.source + again
    candidate = f"""{problem.source}

class ModelNew(Model):
    def forward(self, *inputs):
        for _ in range({kind.candidate - 1}):
            super().forward(*inputs)
        return super().forward(*inputs)
"""
    changed = {"source": source, "sha256": sha256_text(source)}
    return problem.model_copy(update=changed), candidate


def record_of(problem: Problem, kind: str, repeat: int, engine: Engine, settings: VerifySettings) -> Record:
    """One verification, as far as the table needs it."""
    wrapped, candidate = repeated(problem, KINDS[kind])
    began = time.monotonic()
    record: Record = {"problem": problem.id, "name": problem.name, "kind": kind, "repeat": repeat}
    try:
        verdict = engine.verify(candidate, wrapped, settings)
        record |= {"status": verdict.status.value, "reason": verdict.reason[:300]}
        if verdict.status is Status.CORRECT and verdict.measurement is not None:
            record |= _figures(verdict.measurement)
    except KernelproofError as error:
        record |= {"status": "error", "reason": str(error)[:300]}
    return record | {"seconds": round(time.monotonic() - began, 2)}


def _figures(measured: Measurement) -> Record:
    return {
        "speedup": measured.speedup,
        "low": measured.speedup_interval.low,
        "high": measured.speedup_interval.high,
        "pace": measured.pace.value,
        "resolution": measured.resolution,
        "aa_spread": measured.aa_spread,
        "baseline_ms": measured.baseline_ms,
        "candidate_ms": measured.candidate_ms,
        "rounds": len(measured.order),
        "pairs": len(set(measured.sessions)) or 1,
        "disturbed": len(measured.disturbed),
    }


@dataclass(frozen=True)
class Row:
    """What was found for one problem and kind."""

    problem: str
    kind: str
    truth: float
    records: list[Record]

    @property
    def baseline_ms(self) -> float:
        """Time of the problem's forward."""
        return self.middle("baseline_ms")

    @property
    def covered(self) -> int:
        """Intervals that hold the truth."""
        return sum(record["low"] <= self.truth <= record["high"] for record in self.records)

    def paces(self, name: str) -> int:
        """Verifications that came to this pace."""
        return sum(record["pace"] == name for record in self.records)

    def middle(self, name: str) -> float:
        """Median of a figure."""
        return float(median(record[name] for record in self.records))

    @property
    def half_width(self) -> float:
        """Median half-width of the intervals, as a fraction."""
        return median(math.log(record["high"] / record["low"]) / 2 for record in self.records)


def rows_of(records: Sequence[Record]) -> list[Row]:
    """The measured records by problem and kind, each with its truth."""
    measured: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if not _refused(record):
            measured.setdefault((record["problem"], record["kind"]), []).append(record)
    single = {
        problem: median(record["baseline_ms"] for record in found)
        for (problem, kind), found in measured.items()
        if kind == "aa"
    }
    return [
        Row(problem, kind, truth_of(KINDS[kind], single.get(problem), found), found)
        for (problem, kind), found in measured.items()
    ]


def truth_of(kind: Kind, single_ms: float | None, records: Sequence[Record]) -> float:
    """The speedup that is true by construction; `single_ms`: one call of the reference alone."""
    if kind.baseline == 1 or single_ms is None:
        return kind.nominal
    total = float(median(record["baseline_ms"] for record in records))
    further = (total - single_ms) / (kind.baseline - 1)
    return total / (total + (kind.candidate - kind.baseline) * further)


def show(records: Sequence[Record], least_us: float = LEAST_US) -> None:
    """The table by problem and kind, and the totals."""
    rows = rows_of(records)
    print(table(COLUMNS, map(_cells, rows)))
    short = {row.problem for row in rows if row.kind == "aa" and row.baseline_ms * 1e3 < least_us}
    print()
    print(table(TOTALS, totals(records, rows, short)))
    if short:
        print(f"\nnot counted, below {least_us:g} us: {', '.join(sorted(short))}")
    for record in filter(_refused, records):
        print(f"refused: {record['problem']} {record['kind']}: {record['status']}: {record['reason']}")


def _refused(record: Record) -> bool:
    return "speedup" not in record


def _cells(row: Row) -> tuple[object, ...]:
    return (
        row.problem,
        row.kind,
        len(row.records),
        f"{row.baseline_ms:.4g}",
        f"{row.truth:.4f}",
        f"{row.middle('speedup'):.4f}",
        f"{row.covered}/{len(row.records)}",
        *(row.paces(pace) for pace in PACES),
        f"{100 * row.half_width:.2f}",
        f"{100 * row.middle('aa_spread'):.2f}",
        f"{row.middle('seconds'):.1f}",
        sum(record["disturbed"] for record in row.records),
    )


def totals(records: Sequence[Record], rows: Sequence[Row], short: set[str]) -> Iterator[tuple[object, ...]]:
    """A line for each kind: of all verifications, how many were refused, covered, and of each pace."""
    for kind in KINDS:
        mine = [r for r in records if r["kind"] == kind and r["problem"] not in short]
        counted = [row for row in rows if row.kind == kind and row.problem not in short]
        if mine:
            shares = [sum(map(_refused, mine)), sum(row.covered for row in counted)]
            shares += [sum(row.paces(pace) for row in counted) for pace in PACES]
            of_all = (f"{n} ({100 * n / len(mine):.1f} %)" for n in shares)
            yield (kind, len(mine), len({r["problem"] for r in mine}), *of_all)


class Work:
    """What is verified, in which order: repeat by repeat, so that a budget used up leaves equal numbers."""

    def __init__(self, options: argparse.Namespace, book: Book) -> None:
        self._options, self._book = options, book
        self._budget = Budget(options.seconds_budget)
        backend = options.backend or default_backend()
        suite = open_suite()
        problems = suite.select(options.select) if options.select else suite.problems()
        self._settings = VerifySettings(
            backend=backend,
            size=choose_size(options.size, backend, problems),
            own_kernel=False,
            trials=1,
            rigor=options.rigor,
            measure_seconds=options.measure_seconds,
        )
        self._problems = options.share.of(problems)
        self._wanted = -(-options.problems // options.share.count)

    def run(self) -> int:
        """Verifies what is not in the book yet; returns how much of it was left undone."""
        with Engine(many=True) as engine:
            self._book.environment = engine.environment(self._settings).model_dump(mode="json")
            chosen = self._chosen(engine)
            steps = [
                (problem, kind, repeat)
                for repeat in range(self._options.repeats)
                for kind in self._options.kinds
                for problem in chosen
                if self._fits(problem, kind)
            ]
            undone = sum(not self._done(engine, *step) for step in steps)
        if not self._budget.allows_another() and len(chosen) < self._wanted:
            undone += (self._wanted - len(chosen)) * self._options.repeats * len(self._options.kinds)
        return undone

    def _chosen(self, engine: Engine) -> list[Problem]:
        """As many problems as are wanted whose call takes long enough: the first aa of each tells."""
        chosen: list[Problem] = []
        for problem in self._problems:
            if len(chosen) < self._wanted and self._done(engine, problem, "aa", 0):
                single = self._single_ms(problem)
                if single is not None and single * 1e3 >= self._options.least_us:
                    chosen.append(problem)
        return chosen

    def _done(self, engine: Engine, problem: Problem, kind: str, repeat: int) -> bool:
        key = (problem.id, kind, repeat)
        if any((r["problem"], r["kind"], r["repeat"]) == key for r in self._book.records):
            return True
        if not self._budget.allows_another():
            return False
        record = record_of(problem, kind, repeat, engine, self._settings)
        self._budget.note(record["seconds"])
        self._book.add(record)
        said = (
            f"{record['speedup']:.4f} [{record['low']:.4f}, {record['high']:.4f}]" if "low" in record else ""
        )
        print(
            f"{problem.id} {kind} {repeat}: {record['status']} {said} {record['seconds']:.1f} s", flush=True
        )
        return True

    def _single_ms(self, problem: Problem) -> float | None:
        found = (r for r in self._book.records if (r["problem"], r["kind"]) == (problem.id, "aa"))
        return next((r["baseline_ms"] for r in found if "baseline_ms" in r), None)

    def _fits(self, problem: Problem, kind: str) -> bool:
        return (self._single_ms(problem) or 0.0) * KINDS[kind].baseline <= LONGEST_MS


def main() -> None:
    options_of = parser(__doc__, "coverage.json")
    options_of.add_argument("--problems", type=int, default=20, help="how many, of the packaged ones")
    options_of.add_argument("--select", nargs="*", default=[], help="only these, by id, name or glob")
    options_of.add_argument("--repeats", type=int, default=10)
    options_of.add_argument("--rigor", type=Rigor, choices=list(Rigor), default=Rigor.STANDARD)
    options_of.add_argument(
        "--kinds", type=lambda text: text.split(","), default=list(KINDS), help="aa,slow,fast"
    )
    options_of.add_argument("--backend", choices=backends.names())
    options_of.add_argument("--size")
    options_of.add_argument("--measure-seconds", type=float, help="the rigor's")
    options_of.add_argument("--least-us", type=float, default=LEAST_US, help="shorter calls are not counted")
    options = options_of.parse_args()
    if unknown := set(options.kinds) - set(KINDS):
        options_of.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    book = Book.open(options, "coverage")
    book.left = Work(options, book).run()
    book.write()
    show(book.records, options.least_us)
    print(f"{len(book.records)} verifications done, {book.left} left; written to {book.path}")


if __name__ == "__main__":
    main()
