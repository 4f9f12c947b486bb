"""Mutants and honest twins of problems, judged without timing: ``python -m benchmarks.mutants --plan FILE``

First it is decided which candidates there are (`deciding`), and the decisions are kept in --plan. Then they
are judged, those of the smallest problems first. It asserts one thing: the exit code is 1 if a twin, which is
right by its making, was refused or accused. Run again, it goes on with what is missing in --json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from benchmarks.evidence import Book, Budget, Record, merged, parser
from benchmarks.mutants.deciding import JUDGED, UNKNOWN_BYTES, decisions
from benchmarks.mutants.judging import Judge
from benchmarks.mutants.recipes import maker
from benchmarks.mutants.showing import show
from benchmarks.mutants.sizes import sized, smaller
from kernelproof import backends
from kernelproof.problems import open_suite
from kernelproof.runs.sizes import choose_size
from kernelproof.types import Problem, VerifySettings
from kernelproof.verifier.devices.discovery import default_backend

KEY = ("suite", "problem", "role", "row", "name")
"""Fields that name a candidate."""


def main() -> int:
    """Decides and judges; or adds up what earlier runs have judged."""
    options = _options()
    if options.add:
        records = merged(options.add)["records"]
        return 0 if show(records) else 1
    suite = open_suite(options.suite)
    problems = suite.select(options.select) if options.select else suite.problems()
    backend = options.backend or default_backend()
    size = choose_size(options.size, backend, problems)
    plan = _plan(options, problems, size)
    if options.list:
        if options.elements:
            _halved(options, problems, size)
        show(plan)
        return 0
    book = Book.open(options, "mutants")
    if options.cores:  # several judges on one machine would all keep their candidates to the same cores
        cores = sorted(os.sched_getaffinity(0))
        first = options.share.index * options.cores
        os.sched_setaffinity(0, {cores[(first + place) % len(cores)] for place in range(options.cores)})
    present = {(problem.id, problem.sha256) for problem in problems}
    plan = [record for record in plan if record["size"] == size]
    chosen = [record for record in plan if (record["problem"], record["sha256"]) in present]
    if options.elements:
        kept = _halved(options, problems, size)
        problems = [
            problem.model_copy(update={"source": kept[problem.sha256]["source"], "sizes": {size: {}}})
            for problem in problems
        ]
        chosen = [record | {"extent": kept[record["sha256"]]["extent"]} for record in chosen]
    settings = VerifySettings(backend=backend, size=size, own_kernel=False, measure=False)
    _judge(options, book, options.share.of(sorted(chosen, key=_bytes)), problems, settings)
    return 0 if show(book.records) else 1


def _judge(
    options: argparse.Namespace,
    book: Book,
    mine: Sequence[Record],
    problems: Sequence[Problem],
    settings: VerifySettings,
) -> None:
    budget, by_id = Budget(options.seconds_budget), {problem.id: problem for problem in problems}
    done = {_key(record) for record in book.records}
    wanted = [record for record in mine if _key(record) not in done]
    with Judge(settings) as judge:
        book.environment = judge.environment.model_dump(mode="json")
        for number, record in enumerate(wanted):
            if record["decision"] in JUDGED:
                if not budget.allows_another():
                    book.left = sum(each["decision"] in JUDGED for each in wanted[number:])
                    break
                verdict = judge.verdict(by_id[record["problem"]], record)
                record |= {"verdict": verdict}
                budget.note(verdict.get("seconds", 0.0))
                print(
                    f"{record['problem']} {record['row']} ({record['name']}): {verdict['status']}", flush=True
                )
            book.add(record)
        else:
            book.left = 0
    book.write()


def _plan(options: argparse.Namespace, problems: Sequence[Problem], size: str) -> list[Record]:
    """The decisions on all candidates: those in the file, and those still to be made, which are added."""
    path: Path | None = options.plan
    plan: list[Record] = json.loads(path.read_text()) if path is not None and path.exists() else []
    plan = [record for record in plan if record["maker"] == maker()]
    there = {(record["problem"], record["sha256"], record["size"]) for record in plan}
    todo = [problem for problem in problems if (problem.id, problem.sha256, size) not in there]
    if not todo:
        return plan
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        for problem, records in zip(todo, pool.map(decisions, todo, [size] * len(todo)), strict=True):
            plan += records
            print(f"{problem.id} {problem.name}: {len(records)} candidates", flush=True)
            if path is not None:
                path.write_text(json.dumps(plan, indent=1) + "\n")
    return plan


def _halved(options: argparse.Namespace, problems: Sequence[Problem], size: str) -> dict[str, Record]:
    """By a problem's sha256, its text with numbers halved until it holds at most --elements at this size, and
    what it holds then. They are kept beside the plan, by size."""
    path: Path = options.plan.with_suffix(f".{options.elements}.json")
    sizes: dict[str, dict[str, Record]] = json.loads(path.read_text()) if path.exists() else {}
    kept = sizes.setdefault(size, {})
    todo = {problem.sha256: sized(problem, size) for problem in problems if problem.sha256 not in kept}
    if todo:
        with ProcessPoolExecutor(options.jobs, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
            made = pool.map(smaller, todo.values(), [options.elements] * len(todo))
            kept |= dict(zip(todo, made, strict=True))
        path.write_text(json.dumps(sizes, indent=1) + "\n")
    return kept


def _bytes(record: Record) -> int:
    there = record["extent"]
    return int(there["slot_bytes"] + there["weight_bytes"]) if there else UNKNOWN_BYTES


def _key(record: Record) -> tuple[str, ...]:
    return tuple(record[name] for name in KEY)


def _options() -> argparse.Namespace:
    options_of = parser(__doc__, "mutants.json")
    options_of.add_argument("--suite", type=Path, help="a KernelBench checkout; else the packaged problems")
    options_of.add_argument("--select", nargs="*", default=[], help="only these, by id, name or glob")
    options_of.add_argument("--backend", choices=backends.names())
    options_of.add_argument("--size")
    options_of.add_argument("--plan", type=Path, help="where the decisions are kept")
    options_of.add_argument("--elements", type=int, help="at sizes of at most so many elements; needs --plan")
    options_of.add_argument("--list", action="store_true", help="judge none: what would be is `not reached`")
    options_of.add_argument("--cores", type=int, default=0, help="for this share; 0: all there are")
    options_of.add_argument("--jobs", type=int, default=1, help="processes that decide")
    options_of.add_argument("--add", type=Path, nargs="+", help="judge none; add up these --json files")
    options = options_of.parse_args()
    if options.elements and options.plan is None:
        options_of.error("--elements keeps its texts beside --plan; name a file there")
    return options


if __name__ == "__main__":
    sys.exit(main())
