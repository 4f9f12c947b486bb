"""The facts of pages: scores, attempts, and sentences that say what the figures of a board are."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kernelproof.choices import RunKind
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.groups import Curves
from kernelproof.db.scores.records import Evidence, ProblemScores, Scores, Source
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt
from kernelproof.errors import UsageError
from kernelproof.report.findings import speedup_and_interval, tally
from kernelproof.report.layout import percent
from kernelproof.report.leaderboard import audit_of, nothing, outcome, place_of, places, remarks, title_of
from kernelproof.types import Pace, Verification
from kernelproof.types.measurement import resolved
from kernelproof.wording import counted

_SOURCES: dict[RunKind, Source] = {"verify": "file", "tune": "tuner"}


@dataclass(frozen=True)
class AttemptPage:
    """One attempt with its evidence."""

    attempt: StoredAttempt
    verification: Verification | None
    """The one that is shown; None where nothing was verified."""
    parent: StoredAttempt | None
    bundle: bytes | None = None
    """From which anybody reproduces it; None where there is none."""

    @property
    def title(self) -> str:
        """The source of its program, and the setting under which it was judged."""
        setting = (self.verification or self.attempt.run.verify).setting
        return title_of((_SOURCES.get(self.attempt.run.kind, "model"), setting))


Bundler = Callable[[Store, int, int | None], bytes | None]
"""Makes the bundle of an attempt and one of its verifications; None where there is none to make."""
MOST_BUNDLE = 500_000


def attempt_page(
    store: Store, attempt_id: int, verification_id: int | None = None, bundler: Bundler | None = None
) -> AttemptPage:
    """The facts of an attempt. `verification_id`: which of its verifications is shown; None: the one that
    counts, else the newest. `bundler`: makes the bundle that the page holds; None: it holds none.

    Raises UsageError when there is no such attempt, StoreError when its rows make no sense.
    """
    attempt = store.load_attempt(attempt_id)
    shown = attempt.verdict or (attempt.verifications[-1] if attempt.verifications else None)
    if verification_id is not None:
        shown = next(found for found in attempt.verifications if found.id == verification_id)
    bundle = bundler(store, attempt_id, shown.id) if bundler and shown else None
    return AttemptPage(
        attempt=attempt,
        verification=shown.verification if shown else None,
        parent=None if attempt.parent_id is None else store.load_attempt(attempt.parent_id),
        bundle=bundle if bundle is not None and len(bundle) <= MOST_BUNDLE else None,
    )


@dataclass(frozen=True)
class Board:
    """The results that may be compared: one source, one setting."""

    title: str
    models: list[Scores]
    problems: list[ProblemScores]
    curves: dict[str, Curves]
    evidence: dict[int, Evidence]
    """By verification: what the problems' best kernels rest on."""
    audit: str = ""
    """When it was last audited, and how many of its best kernels held; empty where it never was."""


@dataclass(frozen=True)
class Report:
    boards: list[Board]
    remarks: list[str]
    """A sentence for each reason why attempts are left out of the figures."""
    kernels: list[AttemptPage]
    """Those whose claim is highest come first."""
    left_out: int
    """Best kernels of problems that have no section."""


def gather(store: Store, filters: Filters, most_kernels: int = 0, bundler: Bundler | None = None) -> Report:
    """The report's facts. `most_kernels`: kernels with a section of their own; `bundler` makes their bundles.

    Raises UsageError when no finished attempt passes the filters.
    """
    board = store.scores.leaderboard(filters, ("model", "problem"))
    found = places(board)
    if not found:
        raise UsageError(nothing(board, "report"))
    curves = store.scores.curves(filters)
    ranked = sorted(
        (problem.best for problem in board.problems if problem.best is not None),
        key=lambda best: -resolved(best.interval.low, best.pace),
    )
    evidence = store.scores.evidence([best.verification_id for best in ranked])
    return Report(
        boards=[
            Board(
                title=title_of(place),
                models=[scores for scores in board.models if place_of(scores) == place],
                problems=[problem for problem in board.problems if place_of(problem) == place],
                curves={each.model: each for each in curves if (each.source, each.setting) == place},
                evidence=evidence,
                audit=audit_of(board, place),
            )
            for place in found
        ],
        remarks=remarks(board, unresolved=False),
        kernels=[
            attempt_page(store, best.attempt_id, best.verification_id, bundler)
            for best in ranked[:most_kernels]
        ],
        left_out=max(len(ranked) - most_kernels, 0),
    )


TERMS = {
    "speedup": "The reference's time over the kernel's: above 1 the kernel is faster. The reference is the "
    "problem's own PyTorch model, timed in the same minutes.",
    "interval": "The true speedup lies in it with 95 % confidence. Its lower end ranks.",
    "faster": "The whole interval lies above 1 by more than the resolution.",
    "slower": "The whole interval lies below 1 by more than the resolution, or by more than 5 %.",
    "same": "The whole interval lies within the resolution of 1, and within 5 %.",
    "unresolved": "None of these: the interval is too wide, or the times vary too much. It counts as 1 at "
    "most.",
    "resolution": "The smallest difference that a measurement claims: 1 %, or three times its A/A spread if "
    "that is more.",
    "A/A spread": "How far the reference strays from itself when both sides run it: what the machine's noise "
    "alone would show.",
    "fast_p": "The part of the judged samples that is correct and more than p times as fast as the "
    "reference; fast_1: faster at all.",
    "over all": "The geometric mean of the best speedups, over all problems. Where a model has no correct "
    "kernel, the reference is kept, with a speedup of 1.",
    "of roofline": "The least time in which this device moves the data and does the arithmetic, over the "
    "kernel's time: 100 % is the roofline itself.",
}
"""What the words of a report mean: tooltips, and a list in the page."""


def headline(board: Board) -> str:
    """A board in a sentence: `gpt-x on KernelBench level 1: 6 of 10 problems faster, 2 slower, on H200`."""
    first = board.models[0]
    who = first.model if len(board.models) == 1 else counted(len(board.models), "model")
    who = {"model": who, "file": "Kernels from files", "tuner": "Tuned kernels"}[first.source]
    where = f", on {short_device(first.setting.device)}" if first.setting.device else ""
    problems = counted(len(board.problems), "problem")
    paces = (Pace.SLOWER, Pace.UNRESOLVED)
    others = "".join(f", {count} {pace}" for pace in paces if (count := _with(board, pace)))
    return f"{who} on {_problem_set(board)}: {_with(board, Pace.FASTER)} of {problems} faster{others}{where}"


def _with(board: Board, pace: Pace) -> int:
    return sum(problem.best is not None and problem.best.pace is pace for problem in board.problems)


def _problem_set(board: Board) -> str:
    """`KernelBench level 1`, `kernelproof levels 1 to 3`, `2 suites`."""
    suites = sorted({problem.suite for problem in board.problems})
    levels = sorted({problem.level for problem in board.problems if problem.level is not None})
    if len(suites) > 1:
        return counted(len(suites), "suite")
    if len(levels) > 2 and levels[-1] - levels[0] == len(levels) - 1:
        return f"{suites[0]} levels {levels[0]} to {levels[-1]}"
    return f"{suites[0]} {_several('level', [str(level) for level in levels])}".rstrip()


def _several(noun: str, values: list[str]) -> str:
    """`tier A`, `tiers A, C1`; empty without any."""
    return f"{noun if len(values) == 1 else noun + 's'} {', '.join(values)}" if values else ""


def short_device(name: str) -> str:
    """A device without what its maker adds: `Intel Xeon` for `Intel(R) Xeon(R) Processor @ 2.50GHz`."""
    return re.sub(r"\((R|TM)\)| (CPU|Processor)(?= |$)| @.*", "", name).strip() or name


class Figure(NamedTuple):
    """A large number: `9`, `of 10 problems faster`, and what it means."""

    value: str
    label: str
    says: str


def three_figures(board: Board) -> list[Figure]:
    """Problems with a correct kernel, faster ones, and the speedup on the whole, for the top of a page."""
    solved = sum(problem.correct.part > 0 for problem in board.problems)
    of = f"of {counted(len(board.problems), 'problem')}"
    return [
        Figure(
            str(solved), f"{of} with a correct kernel", "A kernel is correct on all inputs that were tried."
        ),
        Figure(str(_with(board, Pace.FASTER)), f"{of} faster", TERMS["faster"]),
        _overall(board),
    ]


def _overall(board: Board) -> Figure:
    """The speedup of a single problem, else the highest mean of a model over all problems."""
    best = [problem.best for problem in board.problems if problem.best is not None]
    if len(board.problems) == 1 and best:
        speedup, brackets = speedup_and_interval(best[0].speedup, best[0].interval)
        return Figure(speedup, f"speedup {brackets}", TERMS["interval"])
    known = [(s.geometric_mean_all.value, s) for s in board.models if s.geometric_mean_all.value is not None]
    if not best or not known:
        return Figure("-", "nothing was timed", "No correct kernel has a time.")
    mean, scores = max(known, key=lambda each: each[0])
    within = scores.geometric_mean_all.interval
    owner = f" of {scores.model}" if len(board.models) > 1 else ""
    label = f"geometric mean{owner} over {counted(scores.problems, 'problem')}"
    speedup, brackets = speedup_and_interval(mean, within)
    return Figure(speedup, f"{label} {brackets}".rstrip(), TERMS["over all"])


def badges(board: Board) -> list[tuple[str, str]]:
    """What was checked of a board's best kernels, as far as it is stored: a few words, and what they mean."""
    best = [p.best for p in board.problems if p.best is not None and p.best.verification_id in board.evidence]
    evidence = [board.evidence[kernel.verification_id] for kernel in best]
    if not evidence:
        return []
    inputs = [
        sum(name.startswith("values: ") and name != "values: repeat" for name in each.passed)
        for each in evidence
    ]
    spread = percent(statistics.median(each.aa_spread for each in evidence))
    clocks = all("host_clock" in each.passed for each in evidence)
    tiers, rigors, policies = (
        sorted({value for value in values if value})
        for values in (
            (each.sandbox_tier for each in evidence),
            (kernel.rigor for kernel in best),
            (each.policy for each in evidence),
        )
    )
    said = {
        "strongest sandbox (tier A)"
        if tiers == ["A"]
        else _several(
            "sandbox tier", tiers
        ): "How strongly candidates were confined: from A, the strongest, to D.",
        f"{min(inputs)} sets of inputs" if min(inputs) else "": "On so many at least every kernel is right: "
        "drawn from secret seeds, with variants such as large, tiny and equal values.",
        "two clocks" if clocks else "": "The referee's own clock bears out each time that is claimed.",
        f"A/A spread {spread}": f"The median of the kernels. {TERMS['A/A spread']}",
        _several("rigor", rigors): "How narrow an interval had to be before timing stopped.",
        _several("rules of version", policies): "The rules by which all were judged.",
        board.audit: "Leading results that were verified again.",
    }
    return [(words, says) for words, says in said.items() if words]


def closing_line(board: Board) -> str:
    """`6 faster · 2 slower · 2 unresolved · 1 not solved`."""
    return tally(map(outcome, board.problems))
