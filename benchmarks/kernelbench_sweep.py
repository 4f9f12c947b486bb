"""Zeros, a constant, another draw's output: is any of them ever believed?
``python -m benchmarks.kernelbench_sweep --suite PATH``

For every problem of a suite: is it fit (as `problems check` asks), and what becomes of four candidates? The
reference itself must be correct. Three fakes must not be, where the problem is fit: zeros, one constant
(the mean of the true output; the most frequent of whole numbers), the true output for inputs of its own
drawing. All run through real verifications, without timing. With `--candidates itself` only the references
run, and whether their problems are fit is not asked.

Measures; asserts nothing. Run again, it goes on with the problems that are missing in --json.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from benchmarks.evidence import Book, Budget, Record, parser, table
from benchmarks.fitness_server import FitnessServer
from kernelproof import backends
from kernelproof.errors import KernelproofError
from kernelproof.problems import open_suite
from kernelproof.runs.sizes import choose_size
from kernelproof.types import CheckOutcome, Problem, Status, VerifySettings
from kernelproof.types.problem import Fitness, Unfit
from kernelproof.verifier.devices.discovery import default_backend
from kernelproof.verifier.engine.engine import Engine

SELF = "itself"
_MAPPED = """

import torch as _torch


def _mapped(value, change):
    if isinstance(value, _torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(_mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return value
"""
CANDIDATES = {
    SELF: """

ModelNew = Model
""",
    "zeros": _MAPPED
    + """

class ModelNew(Model):
    def forward(self, *inputs):
        return _mapped(super().forward(*inputs), _torch.zeros_like)
""",
    "constant": _MAPPED
    + """

def _constant(tensor):
    flat = tensor.flatten()
    if tensor.is_floating_point():
        return _torch.full_like(tensor, float(flat[_torch.isfinite(flat)].mean(dtype=_torch.float64)))
    return _torch.full_like(tensor, int(flat.to(_torch.int64).mode().values))


class ModelNew(Model):
    def forward(self, *inputs):
        return _mapped(super().forward(*inputs), _constant)
""",
    "another draw": _MAPPED
    + """

class ModelNew(Model):
    def forward(self, *inputs):
        tensors = [item for item in (*inputs, *self.parameters()) if isinstance(item, _torch.Tensor)]
        device = tensors[0].device if tensors else _torch.device("cpu")
        with device:
            others = get_inputs()
        return super().forward(*[_mapped(item, lambda tensor: tensor.to(device)) for item in others])
""",
}
"""What is appended to a problem's text to make a candidate of it."""
HOPELESS = {Unfit.ERROR, Unfit.OUT_OF_MEMORY, Unfit.CRASH, Unfit.TIMEOUT, Unfit.NO_OUTPUT}
"""Problems with these findings are not tried with their own reference either."""
NOT_JUDGED = {Status.INFRASTRUCTURE_ERROR, Status.OUT_OF_MEMORY, Status.TIMEOUT, Status.CRASH}
"""Refused, but not for what it computed."""


OUTCOMES = RIGHT, REFUSED, NOT_TOLD = "right", "refused", "not judged"
SELF_COLUMNS = tuple(f"self {outcome}" for outcome in OUTCOMES)


def candidate(problem: Problem, size: str, name: str) -> str:
    """The source of one of CANDIDATES; inputs that it draws by itself have the size that is asked for."""
    values = (f"{key} = {value!r}\n" for key, value in problem.sizes[size].items())
    return "".join([problem.source, "\n\n", *values, CANDIDATES[name]])


class Sweep:
    """Goes through the problems, several at a time; the GPU serves one of them at a time."""

    def __init__(self, options: argparse.Namespace, book: Book) -> None:
        self._options, self._book = options, book
        self._budget = Budget(options.seconds_budget)
        self._lock = threading.Lock()
        backend = options.backend or default_backend()
        suite = open_suite(options.suite)
        problems = suite.select(options.select) if options.select else suite.problems()
        self._problems = [p for p in problems if p.level is None or p.level in options.levels]
        self._settings = VerifySettings(
            backend=backend,
            size=choose_size(options.size, backend, self._problems),
            own_kernel=False,
            trials=1,
            measure=False,
            call_seconds=options.problem_seconds,
            load_seconds=options.problem_seconds,
        )
        self._device = "cuda" if backends.backend(backend).on_gpu else "cpu"

    def run(self) -> int:
        """Problems that were left undone."""
        done = {record["problem"] for record in self._book.records}
        todo = [p for p in self._options.share.of(self._problems) if p.id not in done]
        size, seconds = self._settings.size, self._options.problem_seconds
        with (
            Engine(many=True) as engine,
            FitnessServer(size, self._device, seconds) as fitness,
            ThreadPoolExecutor(self._options.threads) as pool,
        ):
            self._book.environment = engine.environment(self._settings).model_dump(mode="json")
            finished = pool.map(lambda problem: self._problem(problem, engine, fitness), todo)
            return sum(not each for each in finished)

    def _problem(self, problem: Problem, engine: Engine, fitness: FitnessServer) -> bool:
        """Whether there was time for the problem."""
        with self._lock:
            if not self._budget.allows_another():
                return False
        began = time.monotonic()
        wanted: list[str] = self._options.candidates
        fit = fitness.check(problem) if set(wanted) - {SELF} else None
        reasons = {finding.reason for finding in fit.findings} if fit else set()
        possible = set() if reasons & HOPELESS else {SELF} if reasons else set(CANDIDATES)
        runs = {name: self._verified(problem, name, engine) for name in wanted if name in possible}
        seconds = round(time.monotonic() - began, 2)
        record: Record = {"problem": problem.id, "name": problem.name, "level": problem.level}
        record |= {"unfit": fit and _findings(fit), "fitness_seconds": fit and fit.seconds}
        record |= {"runs": runs, "seconds": seconds}
        with self._lock:
            self._budget.note(seconds)
            self._book.add(record)
            print(f"{problem.id} {problem.name}: {_said(record)} {seconds:.1f} s", flush=True)
        return True

    def _verified(self, problem: Problem, name: str, engine: Engine) -> Record:
        began = time.monotonic()
        try:
            verdict = engine.verify(candidate(problem, self._settings.size, name), problem, self._settings)
        except KernelproofError as error:
            return {"status": Status.INFRASTRUCTURE_ERROR.value, "reason": str(error)[:300]}
        failed = next((c.name for c in verdict.checks if c.outcome is CheckOutcome.FAIL), None)
        return {
            "status": verdict.status.value,
            "reason": verdict.reason[:300],
            "check": failed,
            "stages": verdict.stage_seconds,
            "seconds": round(time.monotonic() - began, 2),
        }


def _findings(fit: Fitness) -> list[Record]:
    return [found.model_dump(mode="json", include={"reason", "message"}) for found in fit.findings]


def _reasons(record: Record) -> list[str]:
    """Why a problem is unfit; nothing where it was not asked either."""
    return [finding["reason"] for finding in record["unfit"] or ()]


def _said(record: Record) -> str:
    unfit = ", ".join(_reasons(record))
    runs = ", ".join(f"{name}: {run['status']}" for name, run in record["runs"].items())
    return f"unfit ({unfit}) {runs}" if unfit else runs


def show(records: Sequence[Record]) -> None:
    """The tables, and every case that should not be."""
    header = ("level", "problems", "admitted", "unfit", *SELF_COLUMNS, "fakes accepted")
    print(table(header, (_level_row(level, records) for level in _levels(records))))
    print(
        f"\nfakes on admitted problems\n{table(('fake', 'tried', *_statuses(records)), _fake_rows(records))}"
    )
    reasons = Counter(reason for record in records for reason in _reasons(record))
    print("\nunfit, by reason (a problem may have several)")
    for reason, count in reasons.most_common():
        named = [r["problem"] for r in records if reason in _reasons(r)]
        print(f"  {reason} ({count}): {', '.join(named)}")
    print()
    for record in records:
        for name, run in record["runs"].items():
            wrong = run["status"] != Status.CORRECT if name == SELF else _believed(record, run)
            if wrong:
                where = " (unfit)" if record["unfit"] else ""
                print(
                    f"{record['problem']} {record['name']}{where}, {name}: {run['status']}: {run['reason']}"
                )
    if records:
        print(f"seconds a problem: median {median(record['seconds'] for record in records):.1f}")


def _believed(record: Record, run: Record) -> bool:
    """Whether a fake was taken for right where that must not be."""
    return not record["unfit"] and bool(run["status"] == Status.CORRECT)


def _levels(records: Sequence[Record]) -> list[int | None]:
    found = {record["level"] for record in records}
    return [*sorted(level for level in found if level is not None), *([None] if None in found else [])]


def _level_row(level: int | None, records: Sequence[Record]) -> tuple[object, ...]:
    mine = [record for record in records if record["level"] == level]
    unfit = [record for record in mine if record["unfit"]]
    admitted = [record for record in mine if record["unfit"] == []]
    itself = Counter(
        _outcome(r["runs"][SELF]["status"]) for r in mine if SELF in r["runs"] and not r["unfit"]
    )
    accepted = sum(_believed(r, run) for r in mine for name, run in r["runs"].items() if name != SELF)
    shown = level if level is not None else "-"
    return (shown, len(mine), len(admitted), len(unfit), *map(itself.__getitem__, OUTCOMES), accepted)


def _outcome(status: str) -> str:
    if status == Status.CORRECT:
        return RIGHT
    return NOT_TOLD if status in NOT_JUDGED else REFUSED


def _statuses(records: Sequence[Record]) -> list[str]:
    return sorted(
        {run["status"] for r in records if not r["unfit"] for n, run in r["runs"].items() if n != SELF}
    )


def _fake_rows(records: Sequence[Record]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for name in CANDIDATES:
        if name != SELF:
            tried = [r["runs"][name]["status"] for r in records if name in r["runs"]]
            rows.append((name, len(tried), *(tried.count(status) for status in _statuses(records))))
    return rows


def main() -> None:
    options_of = parser(__doc__, "kernelbench_sweep.json")
    options_of.add_argument(
        "--suite", type=Path, help="a KernelBench checkout; the packaged problems without it"
    )
    options_of.add_argument(
        "--levels", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 3]
    )
    options_of.add_argument("--select", nargs="*", default=[], help="only these, by id, name or glob")
    options_of.add_argument(
        "--candidates", nargs="+", choices=list(CANDIDATES), default=list(CANDIDATES), help="only these"
    )
    options_of.add_argument("--backend", choices=backends.names())
    options_of.add_argument("--size")
    options_of.add_argument("--problem-seconds", type=float, default=120.0, help="most for a call or a check")
    options_of.add_argument("--threads", type=int, default=4, help="problems on their way at a time")
    options = options_of.parse_args()
    book = Book.open(options, "kernelbench_sweep")
    book.left = Sweep(options, book).run()
    book.write()
    show(book.records)
    print(f"{len(book.records)} problems done, {book.left} left; written to {book.path}")


if __name__ == "__main__":
    main()
