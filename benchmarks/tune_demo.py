"""How much does `tune` gain on the example kernels? ``python -m benchmarks.tune_demo --backend cuda``.

For each kernel of docs/examples/tune: `tune`, whose last two verifications are measured against torch.compile
as well, then `reproduce` of what it chose. Prints a table, writes JSON. Trials are kept in --workspace. So a
run that was killed goes on where it stopped, in the middle of a kernel too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from benchmarks.evidence import Book, Budget, Record, parser, table
from kernelproof import backends
from kernelproof.db.store import Store, open_store
from kernelproof.problems import Suite, open_suite
from kernelproof.runs.candidates import CandidateInput, read_candidates
from kernelproof.runs.reproduction import reproduce
from kernelproof.runs.sizes import choose_size
from kernelproof.runs.tuning import Trial, Tuned, TuningTask, proposer_for, tune
from kernelproof.runs.tuning_template import read_template
from kernelproof.types import Rigor, VerifySettings
from kernelproof.verifier.devices.discovery import default_backend
from kernelproof.verifier.engine.engine import Engine
from kernelproof.wording import counted
from kernelproof.workspace import open_workspace

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples" / "tune"
ENOUGH = 1.2
"""Gains of at least so much are counted."""
SEED = 0


def main() -> None:
    made = parser(__doc__, "tune_demo.json")
    made.add_argument("--backend", default=default_backend(), choices=backends.names())
    made.add_argument("--trials", type=int, default=16, help="combinations of each kernel, at most")
    made.add_argument(
        "--seconds-per-problem", type=float, default=30.0, help="no more are begun after so long"
    )
    made.add_argument("--rigor", type=Rigor, choices=list(Rigor), default=Rigor.STANDARD)
    made.add_argument("--size", help="the problems' [full on a GPU, else small]")
    made.add_argument("--select", nargs="*", default=[], help="only these problems, by id, name or glob")
    made.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    made.add_argument("--workspace", type=Path, default=Path("generated/benchmarks/tune_demo"))
    options = made.parse_args()
    book = Book.open(options, "tune_demo")
    options.workspace.mkdir(parents=True, exist_ok=True)
    with open_store(open_workspace(options.workspace).database) as store:
        book.left = run(options, book, store)
    book.write()
    show(book.records)
    print(f"{counted(len(book.records), 'kernel')} tuned, {book.left} left; written to {book.path}")


def run(options: argparse.Namespace, book: Book, store: Store) -> int:
    """Tunes what is not in the book yet; returns how much of it was left undone."""
    budget, done = Budget(options.seconds_budget), {record["problem"] for record in book.records}
    for record in book.records:
        budget.note(record["seconds"])
    left = [given for given in options.share.of(_examples(options)) if given.problem.id not in done]
    while left and budget.allows_another():
        given = left.pop(0)
        record = tuned(given, options, store)
        book.environment = record.pop("environment") or book.environment
        budget.note(record["seconds"])
        book.add(record)
        print("  ".join(map(str, _row(record))), flush=True)
    return len(left)


def _examples(options: argparse.Namespace) -> list[CandidateInput]:
    """The example kernels of the backend. Exits with a message where there are none."""
    folder = EXAMPLES / options.backend
    if not folder.is_dir():
        raise SystemExit(f"there are no example kernels for {options.backend}: no folder {folder}")
    suite: Suite = open_suite()
    given = read_candidates(folder, suite, None)
    chosen = suite.select(options.select) if options.select else suite.problems()
    return [one for one in given if one.problem in chosen]


def tuned(given: CandidateInput, options: argparse.Namespace, store: Store) -> Record:
    """One example, tuned and reproduced."""
    began = time.monotonic()
    plan = _plan(given, options)
    proposer = proposer_for(plan.template, options.trials, SEED)
    work = partial(tune, plan, proposer, Engine(many=True), store, trials=options.trials)
    outcome = anyio.run(partial(work, seconds=options.seconds_per_problem, on_trial=partial(_say, plan)))
    if outcome.stopped:
        raise SystemExit("stopped: run the same command again to continue")
    record = {"problem": given.problem.id, "file": given.id, **_found(plan, outcome)}
    chosen = outcome.best or outcome.original
    environment = None
    if chosen is not None and chosen.correct:
        with Engine() as engine:
            again = reproduce(store, chosen.attempt_id, engine)
        record |= {"attempt": chosen.attempt_id, "reproduced": again.finding, "why": again.reason}
        if again.now is not None and again.now.environment is not None:
            environment = again.now.environment.model_dump(mode="json")
    return record | {"seconds": time.monotonic() - began, "environment": environment}


def _plan(given: CandidateInput, options: argparse.Namespace) -> TuningTask:
    assert given.extraction.candidate is not None
    confirm = VerifySettings(
        backend=options.backend,
        size=choose_size(options.size, options.backend, [given.problem]),
        rigor=options.rigor,
        baselines=() if options.no_compile else ("compile",),
    )
    trial = confirm.model_copy(update={"rigor": Rigor.QUICK, "baselines": ()})
    return TuningTask(read_template(given.extraction.candidate.source), given.problem, trial, confirm)


def _say(plan: TuningTask, trial: Trial) -> None:
    named = ", ".join(f"{name} {value}" for name, value in plan.template.named(trial.values).items())
    speedup = f"{trial.measurement.speedup:.3f}" if trial.correct and trial.measurement else trial.reason
    print(f"  {named}: {trial.status} {speedup:.100}", flush=True)


def _found(plan: TuningTask, outcome: Tuned) -> dict[str, Any]:
    """What the tuning found, in numbers and names."""
    first, gain = outcome.original or outcome.trials[0], outcome.gain
    return {
        "combinations": plan.template.allowed,
        "trials": len(outcome.trials),
        "correct": len(outcome.ranked),
        "status": first.status,
        "reason": first.reason,
        "first": _measured(plan, outcome.original),
        "best": _measured(plan, outcome.best),
        "gain": gain and gain.ratio,
        "interval": gain and [gain.interval.low, gain.interval.high],
        "shown": bool(gain and gain.shown),
    }


def _measured(plan: TuningTask, trial: Trial | None) -> dict[str, Any] | None:
    """A confirmed trial; `compiled`: its speedup over torch.compile, where there is one."""
    if trial is None or not trial.correct or trial.measurement is None:
        return None
    m = trial.measurement
    return {
        "values": plan.template.named(trial.values),
        "ms": m.candidate_ms,
        "eager": m.speedup,
        "compiled": [one.model_dump(mode="json", exclude={"measured"}) for one in m.against],
    }


HEADER = ("problem", "trials", "first ms", "best ms", "gain", "95 % interval", "torch.compile", "reproduce")


def show(records: Iterable[Record]) -> None:
    """A line for each kernel; then how many gained, how many beat torch.compile, and how many stand."""
    records = list(records)
    print(table(HEADER, map(_row, records)))
    enough = sum(r["shown"] and r["gain"] >= ENOUGH for r in records)
    surely = sum(r["shown"] and r["interval"][0] >= ENOUGH for r in records)
    faster = sum(_compiled(r).get("pace") == "faster" for r in records)
    same = sum(r.get("reproduced") == "same" for r in records)
    print(f"at least {ENOUGH} times as fast as the first version: {enough}, by the whole interval {surely}")
    print(f"faster than torch.compile: {faster}; reproduced as the same: {same} of {len(records)}")


def _row(record: Record) -> tuple[object, ...]:
    first, best, against = record["first"], record["best"], _compiled(record)
    low, high = record["interval"] or (None, None)
    compiled = against.get("speedup_interval", {})
    return (
        record["problem"],
        f"{record['trials']} of {record['combinations']}",
        f"{first['ms']:.4f}" if first else record["status"],
        f"{best['ms']:.4f}" if best else "-",
        f"{record['gain']:.3f}" if record["gain"] else "-",
        f"{low:.3f} to {high:.3f}" if low and high else "-",
        f"{against['speedup']:.3f} ({compiled['low']:.3f} to {compiled['high']:.3f})" if against else "-",
        record.get("reproduced", "-"),
    )


def _compiled(record: Record) -> dict[str, Any]:
    """The chosen kernel against torch.compile; empty where that was not measured."""
    chosen = record["best"] or record["first"]
    return chosen["compiled"][0] if chosen and chosen["compiled"] else {}


if __name__ == "__main__":
    main()
