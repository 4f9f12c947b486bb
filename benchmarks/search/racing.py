"""How much time racing saves, and how wrong its figures are: ``python -m benchmarks.search.racing``.

Each search is made twice on the same landscape: every attempt verified at `standard`, and raced. Its seconds
are those in which the device is held. `--good-enough` ends searches that race, as if the landscape's best
were the roofline.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.evidence import table
from benchmarks.search import plotting
from benchmarks.search.comparing import mean, ratio
from benchmarks.search.landscapes import LANDSCAPES, drawn
from benchmarks.search.proposer import STRONG, Proposer
from benchmarks.search.searching import Budget, Searching
from benchmarks.search.timing import MACHINES, Machine, Timed, TimedVerifier
from benchmarks.search.verdicts import problem
from kernelproof.choices import Rigor
from kernelproof.runs.strategies import find_strategy
from kernelproof.types import Measurement
from kernelproof.wording import counted

SAME = 0.99
"""The same kernel: at least so much of the other's speedup."""


@dataclass(frozen=True)
class Raced:
    """How one search ended."""

    true: float
    """The true speedup of its best; 1 where nothing was measured to be faster than the reference."""
    screened: float
    """The measured speedup of its best when that was chosen."""
    reported: float
    """The measured speedup of its best that is reported."""
    seconds: float
    timing: float
    """Seconds of these from the beginning of the timing on: warm-up, rounds, other pairs, probes."""


@cache
def raced(
    strategy: str,
    name: str,
    seed: int,
    questions: int,
    machine: Machine,
    *,
    races: bool,
    good_enough: float | None = None,
) -> Raced:
    """One search on one landscape. Kept, since several tables show the same search."""
    landscape, of = drawn(name, seed), problem(name, seed)
    verifier = TimedVerifier(of, landscape, machine, Rigor.STANDARD, races=races)
    proposer, budget = Proposer(STRONG, of.source), Budget(questions)
    found = Searching(find_strategy(strategy), landscape, of, proposer, verifier, budget).run()
    seconds, timing, best, reported = 0.0, 0.0, Timed(0.0, 0.0, 1.0, 0.0), 0.0
    winners: dict[int, Timed] = {}
    enough = math.inf if good_enough is None else good_enough * landscape.speedup(landscape.best)

    def again(each: Timed, number: int) -> Measurement:
        nonlocal seconds, timing
        told, spent = verifier.stopwatch.time(each.true, f"{number}/again", verifier.rigor)
        seconds += spent
        timing += spent - machine.before_s
        return told

    for number, (each, tried) in enumerate(zip(verifier.made, found.tries, strict=True)):
        seconds += each.seconds
        timing += each.seconds - machine.before_s if each.speedup else 0.0
        if each.claimed > winners.get(tried.sample, best).claimed:
            winners[tried.sample] = each
        if each.speedup >= enough and (not races or again(each, number).speedup >= enough):
            break
    claimed = 0.0
    for sample, each in winners.items():
        told = again(each, -1 - sample) if races else each
        if told.claimed > claimed:
            claimed, best, reported = told.claimed, each, told.speedup
    if claimed <= 1:
        return Raced(1.0, 1.0, 1.0, seconds, timing)
    return Raced(best.true, best.speedup, reported, seconds, timing)


def bias(strategy: str, questions: int, machine: Machine, seeds: int) -> list[str]:
    """The best's figure over its truth: as screened, and as verified again; 95 % intervals over searches."""
    found = [
        raced(strategy, name, seed, questions, machine, races=True)
        for name in LANDSCAPES
        for seed in range(seeds)
    ]
    faster = [each for each in found if each.true > 1]
    truths = [each.true for each in faster]
    screened = ratio([each.screened for each in faster], truths)
    reported = ratio([each.reported for each in faster], truths)
    return [str(screened), str(reported), str(len(faster))]


def saved(
    strategy: str, questions: int, machine: Machine, seeds: int, good_enough: float | None
) -> Iterable[list[str]]:
    """For each landscape and all of them: the truth of the best, raced over verified at `standard`; how often
    it is the same within 1 % or better; the seconds, all at `standard` over raced, and what that would be at
    most: if timing took none in a search that is raced."""
    found = {name: pairs(strategy, name, questions, machine, seeds, good_enough) for name in LANDSCAPES}
    rows = [[name, *_row(each)] for name, each in found.items()]
    return [*rows, ["all", *_row([pair for each in found.values() for pair in each])]]


def pairs(
    strategy: str, name: str, questions: int, machine: Machine, seeds: int, good_enough: float | None
) -> list[tuple[Raced, Raced]]:
    """For each seed the search on one landscape that is raced, and the one all at `standard`."""
    return [
        (
            raced(strategy, name, seed, questions, machine, races=True, good_enough=good_enough),
            raced(strategy, name, seed, questions, machine, races=False),
        )
        for seed in range(seeds)
    ]


def _row(pairs: Sequence[tuple[Raced, Raced]]) -> list[str]:
    truth = ratio([one.true for one, _ in pairs], [other.true for _, other in pairs])
    same = sum(one.true >= SAME * other.true for one, other in pairs) / len(pairs)
    standard, seconds = sum(other.seconds for _, other in pairs), sum(one.seconds for one, _ in pairs)
    most = standard / (seconds - sum(one.timing for one, _ in pairs))
    each = mean([one.seconds for one, _ in pairs])
    return [str(truth), f"{same:.0%}", f"{each:.0f}", f"{standard / seconds:.2f}", f"{most:.2f}"]


def plotted(options: argparse.Namespace, questions: int) -> Path:
    """Draws the seconds of one search, the mean over the landscapes."""
    rows = []
    for machine, strategy in itertools.product(options.machines, options.strategies):
        for enough in (None, *options.good_enough):
            found = [
                pair
                for name in LANDSCAPES
                for pair in pairs(strategy, name, questions, MACHINES[machine], options.seeds, enough)
            ]
            if enough is None:
                spent = statistics.fmean(other.seconds for _, other in found)
                rows.append((machine, strategy, "all at standard", spent))
            way = "raced" if enough is None else f"raced, ends at {enough:.0%}"
            rows.append((machine, strategy, way, statistics.fmean(one.seconds for one, _ in found)))
    title = f"Seconds of the device in a search of {counted(questions, 'question')}, by how it is verified"
    return plotting.write(options.plots, "search-racing", plotting.seconds(rows), title)


def recorded(path: Path, tries: int) -> str:
    """How much more the best of so many recorded verifications of one program shows than their mean."""
    groups: dict[tuple[str, str], list[float]] = {}
    for each in json.loads(path.read_text())["records"]:
        if each["status"] == "correct":
            groups.setdefault((each["problem"], each["kind"]), []).append(math.log(each["speedup"]))
    over = [
        max(logs[:tries]) - statistics.fmean(logs[tries:]) for logs in groups.values() if len(logs) > tries
    ]
    mostly = ", ".join(f"{math.expm1(q):.2%}" for q in statistics.quantiles(over, n=4))
    average = math.expm1(statistics.fmean(over))
    return f"best of {tries} over another one, {len(over)} programs: mean {average:.2%}, quartiles {mostly}"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.racing", description=__doc__)
    parser.add_argument("--strategies", nargs="+", default=["refine", "beam", "evolve"], metavar="NAME")
    parser.add_argument("--machines", nargs="+", default=[*MACHINES], choices=[*MACHINES])
    parser.add_argument("--tries", nargs="+", type=int, default=[8, 32, 128])
    parser.add_argument("--seeds", type=int, default=20, help="searches on each landscape")
    parser.add_argument("--good-enough", type=float, nargs="*", default=[0.9, 0.99])
    parser.add_argument("--records", type=Path, default=Path("docs/lab/records/coverage.json"))
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draws an SVG into it")
    options = parser.parse_args()
    if options.plots is not None:
        plotting.require(parser)
    print("The best's figure over its truth, searches in which something was faster than the reference")
    rows = [
        (machine, strategy, tries, *bias(strategy, tries, MACHINES[machine], options.seeds))
        for machine in options.machines
        for strategy in options.strategies
        for tries in options.tries
    ]
    print(table(("machine", "strategy", "tries", "screened", "verified again", "searches"), rows))
    print(recorded(options.records, 8))
    header = ("landscape", "truth of the best", "same or better", "s", "times fewer s", "at most")
    tries = options.tries[-2:][0]
    for machine, strategy in itertools.product(options.machines, options.strategies):
        for enough in (None, *options.good_enough):
            stop = "" if enough is None else f", ends at {enough:.0%} of the landscape's best"
            print(f"\n{machine}, {strategy}, {tries} questions, raced{stop}")
            print(table(header, saved(strategy, tries, MACHINES[machine], options.seeds, enough)))
    if options.plots is not None:
        print(f"wrote {plotted(options, tries)}")


if __name__ == "__main__":
    main()
