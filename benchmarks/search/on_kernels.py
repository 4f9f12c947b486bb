"""Compares search strategies on real C++ kernels: ``python -m benchmarks.search.on_kernels``.

A synthetic model edits real kernels (`editor.py`) behind a server on loopback. `kernelproof generate` asks it
with each strategy, the same number of questions, and verifies every answer on this machine. The winner of
each search is then measured again, and that speedup is its gain: a lucky measurement wins nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.evidence import table
from benchmarks.search.comparing import Record, Table, marks, mean, ratio
from benchmarks.search.editor import Editor, served
from benchmarks.search.kernels import KERNELS
from benchmarks.search.proposer import MODELS
from benchmarks.search.showing import spent
from kernelproof import Scorer, __version__, backends
from kernelproof.db.store import Store, open_store
from kernelproof.db.views import StoredAttempt
from kernelproof.errors import UsageError
from kernelproof.extraction.normalise import normalized_hash
from kernelproof.types import Measurement, Status
from kernelproof.wording import counted
from kernelproof.workspace import open_workspace

AGAINST = "sample"
FEWEST = 6
"""Pairs that an interval needs: five that all point one way do so by chance in 6 % of cases."""


def main() -> None:
    """Prints the comparison; after every seed the records are written."""
    options = parsed()
    options.workspace.mkdir(parents=True, exist_ok=True)
    records: list[Record] = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for strategy in options.strategies:
            asked(options, strategy, seed)
        records += judged(options, seed)
        write(options, records)
        print(f"seed {seed} is done", flush=True)
    print(shown(records))
    print(noise(options))
    print(f"every search is in {options.json}")


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.on_kernels", description=__doc__)
    names = [name for name in backends.names() if not backends.backend(name).on_gpu]
    parser.add_argument("--strategies", nargs="+", default=[AGAINST, "refine", "beam", "evolve"])
    parser.add_argument("--problems", nargs="+", default=[*KERNELS], choices=[*KERNELS], metavar="ID")
    parser.add_argument("--seeds", type=int, default=3, help="searches of each strategy on each problem")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--budget", type=int, default=12, help="questions of one search")
    parser.add_argument("--model", choices=[*MODELS], default="strong", help="how often it fails")
    parser.add_argument("--seconds", type=float, default=0.5, help="most seconds of timed blocks")
    parser.add_argument("--confirm-seconds", type=float, default=2.0, help="the same, for winners")
    parser.add_argument("--backend", choices=names, default=names[0])
    parser.add_argument("--workspace", type=Path, default=Path("generated/benchmarks/on_kernels"))
    parser.add_argument("--json", type=Path, default=Path("generated/benchmarks/on_kernels.json"))
    return parser.parse_args()


def run_name(strategy: str, seed: int) -> str:
    """The name of a search's run."""
    return f"{strategy}-{seed}"


def asked(options: argparse.Namespace, strategy: str, seed: int) -> None:
    """One command for all problems. Exits where it does not end well; given again, it goes on."""
    single, run = strategy == AGAINST, run_name(strategy, seed)
    with open_store(open_workspace(options.workspace).database) as store:
        before = {problem: len(begun(store, run, problem)) for problem in options.problems}
    # A run is known by its server's address too: one that goes on needs the port that it began with.
    kept = options.workspace / f"{run}.port"
    port = int(kept.read_text()) if kept.exists() else 0
    with served(Editor(MODELS[options.model], seed, before), port) as url:
        kept.write_text(str(urlsplit(url).port))
        command = [
            *(sys.executable, "-m", "kernelproof", "generate", *options.problems),
            *("--model", f"openai:editor-{options.model}-{seed}", "--base-url", url, "--no-stream"),
            *("--run", run, "--strategy", strategy, "--no-race"),
            *("--samples", str(options.budget if single else 1)),
            *("--turns", str(1 if single else options.budget)),
            *("--rigor", "quick", "--seconds", str(options.seconds), "--trials", "1"),
            *("--backend", options.backend, "--workspace", str(options.workspace), "--json"),
        ]
        log = options.workspace / f"{run}.log"
        with log.open("a") as file:
            environment = {**os.environ, "OPENAI_API_KEY": "none"}
            done = subprocess.run(
                command, stdout=file, stderr=subprocess.STDOUT, env=environment, check=False
            )
    if done.returncode != 0:
        sys.exit(f"generate ended with {done.returncode}: see {log}; the same command again goes on")


def judged(options: argparse.Namespace, seed: int) -> list[Record]:
    """The records of a seed, with the winners measured again.

    A problem is left out where a search found no correct program.
    """
    found: list[Record] = []
    with open_store(open_workspace(options.workspace).database) as store:
        for problem in options.problems:
            tries = {name: tried(store, run_name(name, seed), problem) for name in options.strategies}
            winners = {name: won for name, each in tries.items() if (won := best(each)) is not None}
            if len(winners) < len(tries):
                print(f"seed {seed}: {problem} is left out, a search found nothing that is correct")
                continue
            gains = confirmed(options, seed, problem, winners)
            most = max(gains.values())
            found += [
                record(name, seed, problem, tries[name], options.budget, gain=gain, best=most)
                for name, gain in gains.items()
            ]
    return found


def begun(store: Store, run: str, problem: str) -> list[int]:
    """The numbers of a run's attempts at a problem, the oldest first; none before the run is begun."""
    try:
        runs = store.runs_named(run)
    except UsageError:
        return []
    states = [one for number in runs for one in store.attempts_of(number).items()]
    return sorted(state.id for key, state in states if key.problem_id == problem)


def tried(store: Store, run: str, problem: str) -> list[StoredAttempt]:
    """The same attempts with all that is stored of them."""
    return [store.load_attempt(number) for number in begun(store, run, problem)]


def timed(attempt: StoredAttempt) -> Measurement | None:
    """The measurement of a correct program; None of any other."""
    verdict = attempt.verdict if attempt.status is Status.CORRECT else None
    return verdict.verification.measurement if verdict else None


def claimed(attempt: StoredAttempt) -> float:
    """The figure that ranks: the lower end of the interval; 0 for what is not correct."""
    measured = timed(attempt)
    return measured.claimed if measured else 0.0


def best(attempts: Sequence[StoredAttempt]) -> StoredAttempt | None:
    """The one with the highest claim; None where nothing is correct."""
    winner = max(attempts, key=claimed, default=None)
    return winner if winner is not None and claimed(winner) > 0 else None


def confirmed(
    options: argparse.Namespace, seed: int, problem: str, winners: dict[str, StoredAttempt]
) -> dict[str, float]:
    """The gain of each strategy. Equal winners are measured once, so that they gain the same."""
    gains = {}
    with Scorer(
        problem,
        backend=options.backend,
        measure_seconds=options.confirm_seconds,
        trials=1,
        workspace=options.workspace,
        run=f"winners-{seed}",
    ) as scorer:
        for strategy, winner in winners.items():
            assert winner.source is not None
            measured = scorer.score(winner.source).verification
            assert measured is not None and measured.measurement is not None
            gains[strategy] = measured.measurement.speedup
    return gains


def record(
    strategy: str,
    seed: int,
    problem: str,
    attempts: Sequence[StoredAttempt],
    budget: int,
    *,
    gain: float,
    best: float,
) -> Record:
    """The figures of one search. Its curve is of claims, and the first correct program begins it."""
    claims = [claimed(each) for each in attempts]
    first = next(claim for claim in claims if claim > 0)
    usages = [each.response.usage for each in attempts if each.response and each.response.usage]
    return Record(
        landscape=problem,
        strategy=strategy,
        seed=seed,
        gain=gain,
        best=best,
        claimed=max(claims),
        curve=tuple(max(claims[:mark]) or first for mark in marks(budget)),
        questions=len(attempts),
        correct=sum(each.status is Status.CORRECT for each in attempts),
        tokens=sum((each.prompt_tokens or 0) + (each.completion_tokens or 0) for each in usages),
        samples=len({each.key.sample for each in attempts}),
        ended=len(attempts) if strategy != AGAINST and len(attempts) < budget else None,
    )


def shown(records: Sequence[Record]) -> str:
    """The tables: gains by problem, their ratio to those of `sample`, and what was spent."""
    found = Table(records)
    gains = [
        (name, *(f"{mean([each.gain for each in found.of(name, one)]):.3f}" for one in found.strategies))
        for name in found.landscapes
    ]
    others = [name for name in found.strategies if name != AGAINST]
    base = [each.gain for each in found.all_of(AGAINST)] if AGAINST in found.strategies else []
    ratios = [(one, compared([each.gain for each in found.all_of(one)], base)) for one in others if base]
    return "\n".join(
        [
            "Gain: geometric mean of the winner's speedup, measured again",
            table(("problem", *found.strategies), gains),
            f"Gain over that of {AGAINST}, paired by problem and seed: ratio, 95 % interval, won and lost",
            table(("strategy", "ratio"), ratios),
            spent(found),
        ]
    )


def compared(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The ratio of gains with its interval, which few pairs do not have."""
    found, pairs = ratio(ours, theirs), len(ours)
    interval = f"[{found.low:.3f}, {found.high:.3f}]" if pairs >= FEWEST else f"from {counted(pairs, 'pair')}"
    return f"{found.ratio:.3f} {interval}, {found.won} won, {found.lost} lost"


def noise(options: argparse.Namespace) -> str:
    """How far measurements of one program are apart, over all searches: what a gain has to exceed."""
    found: dict[tuple[str, str], list[float]] = {}
    with open_store(open_workspace(options.workspace).database) as store:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for strategy, problem in itertools.product(options.strategies, options.problems):
                for attempt in tried(store, run_name(strategy, seed), problem):
                    measured = timed(attempt)
                    if attempt.source is not None and measured is not None:
                        found.setdefault((problem, normalized_hash(attempt.source)), []).append(
                            measured.speedup
                        )
    return apart([max(each) / min(each) for each in found.values() if len(each) > 1])


def apart(factors: Sequence[float]) -> str:
    """The sentence about the factors between the highest and the lowest speedup of programs."""
    if not factors:
        return "No program was measured more than once"
    middle, most = statistics.median(factors), max(factors)
    programs = counted(len(factors), "program")
    return f"Speedups of the same program: up to {most:.2f} times apart, median {middle:.2f} ({programs})"


def write(options: argparse.Namespace, records: Sequence[Record]) -> None:
    """All of it as JSON."""
    options.json.parent.mkdir(parents=True, exist_ok=True)
    whole = {
        "benchmark": "search.on_kernels",
        "kernelproof": __version__,
        "options": {name: str(value) for name, value in vars(options).items()},
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg(),
        "records": [each.row for each in records],
    }
    options.json.write_text(json.dumps(whole) + "\n")


if __name__ == "__main__":
    main()
