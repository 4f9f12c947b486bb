"""The strategies: `sample` asks once, `repair` until an answer is correct. `refine`, `beam` and `evolve`
search for a fast program, on the best attempt so far and an archive of programs to build on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kernelproof.runs.strategies.protocol import Proposal, Result, Task, strategy
from kernelproof.types import Stage, Status
from kernelproof.wording import counted


@strategy("sample")
class Sample:
    """Asks once, however many turns there are."""

    def __init__(self, task: Task) -> None:
        self._next: tuple[Proposal, ...] = (Proposal(),)

    def ask(self) -> Sequence[Proposal]:
        """The problem's first question, then nothing."""
        return self._next

    def tell(self, results: Sequence[Result]) -> None:
        self._next = ()


@strategy("repair")
class Repair:
    """One line of attempts, each built on the one before. It ends with the first correct one."""

    def __init__(self, task: Task) -> None:
        self._next: tuple[Proposal, ...] = (Proposal(),)

    def ask(self) -> Sequence[Proposal]:
        """One question, as long as the last attempt was not correct."""
        return self._next

    def tell(self, results: Sequence[Result]) -> None:
        """Builds the next question on this attempt, unless it is correct."""
        (last,) = results
        self._next = () if last.correct else (Proposal(parent=last.turn),)


CLEARLY = 1.01
"""How much faster a program must be to count as an improvement: less is within the noise of most clocks."""


class BestSoFar:
    """The best result of a search so far, and whether the search should stop."""

    def __init__(self, task: Task, patience: int) -> None:
        """`patience`: attempts without an improvement, after a correct one, that end the search."""
        self._timed, self._patience = task.timed, patience
        self.best: Result | None = None
        """The correct result with the highest lower end of its interval; of equal ones the first."""
        self.since = 0
        self._mark = 0.0

    def tell(self, results: Sequence[Result]) -> None:
        for result in results:
            self.since += self.best is not None
            if result.correct and (self.best is None or result.speedup > self.best.speedup):
                if self.best is None or result.speedup > self._mark * CLEARLY:
                    self.since, self._mark = 0, result.speedup
                self.best = result

    @property
    def note(self) -> str:
        """Why the search is over; empty when it is not."""
        if self.best is None:
            return ""
        if not self._timed:
            return "a correct program is there, and nothing is timed"
        if self.since >= self._patience:
            return f"no improvement in {counted(self.since, 'attempt')}"
        return ""


class Search:
    """A strategy that looks for a fast program: it ends when it gets no better."""

    template = "basic-v4"
    races = True

    def __init__(self, task: Task, patience: int) -> None:
        """`patience`: as `BestSoFar` has it."""
        self._best_so_far = BestSoFar(task, patience)

    @property
    def note(self) -> str:
        return self._best_so_far.note

    @property
    def _base(self) -> Proposal:
        """The question about the best program; the problem's first one where there is none."""
        best = self._best_so_far.best
        return Proposal(best.turn, history=False) if best else Proposal()


def closeness(result: Result) -> int:
    """How far an attempt came: the higher, the less is left to repair."""
    if result.status in _ALMOST:
        return 5
    return _REACHED[result.status.stage]


_ALMOST = (Status.WRONG_OUTPUT, Status.NONDETERMINISTIC, Status.MUTATED_INPUT)
_REACHED = {
    Stage.PROVIDER: 0,
    Stage.EXTRACTION: 0,
    Stage.TIMING: 1,  # a cheat: what it does has to go
    Stage.POLICY: 2,
    Stage.BUILD: 3,
    Stage.CORRECTNESS: 4,
    Stage.DONE: 6,
}


REPAIRS = 2
"""Questions about a program that is not correct, before it is given up."""


class Archive:
    """Results, and how many questions were built on each. Programs that are alike are in it once."""

    def __init__(self) -> None:
        self._results: dict[str, Result] = {}
        self._children: Counter[str] = Counter()
        self._names: dict[int, str] = {}
        """By turn: the program that it came to."""

    def add(self, result: Result) -> None:
        """Takes up a result. Of two programs that are alike the one that ranks first stays."""
        name = result.normalized_hash or f"turn {result.turn}"
        self._names[result.turn] = name
        known = self._results.get(name)
        if known is None or _rank(result) > _rank(known):
            self._results[name] = result

    def built_on(self, turns: Iterable[int | None]) -> None:
        """Questions were asked about the programs of these turns."""
        self._children.update(self._names[turn] for turn in turns if turn in self._names)

    def children(self, result: Result) -> int:
        return self._children[self._names[result.turn]]

    @property
    def correct(self) -> list[Result]:
        """The correct programs, the fastest first."""
        return sorted((each for each in self._results.values() if each.correct), key=_rank, reverse=True)

    @property
    def broken(self) -> list[Result]:
        """Programs that are not correct and may still be repaired, the one that came farthest first."""
        left = (each for each in self._results.values() if not each.correct)
        return sorted((each for each in left if self.children(each) < REPAIRS), key=_rank, reverse=True)


def _rank(result: Result) -> tuple[int, float, int]:
    """Correct before broken, fast before slow, and of broken ones what came farther and then later."""
    if result.correct:
        return closeness(result), result.speedup, -result.turn
    return closeness(result), 0.0, result.turn


REPAIRS_IN_A_ROW = 3
"""Repairs in a row, before the search goes back to its best attempt, or to the first question."""
REFINE_PATIENCE = 10


@strategy("refine")
class Refine(Search):
    """Repairs until something is correct, then makes the best faster, one question after another."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, REFINE_PATIENCE)
        self._last: Result | None = None
        self._broken = 0
        """Attempts in a row that were not correct."""

    def ask(self) -> Sequence[Proposal]:
        """A repair of the last attempt, else an improvement of the best."""
        if self.note:
            return ()
        if self._last is not None and 0 < self._broken <= REPAIRS_IN_A_ROW:
            return (Proposal(self._last.turn, history=False),)
        return (self._base,)

    def tell(self, results: Sequence[Result]) -> None:
        """Keeps the best, and counts what is broken in a row."""
        (self._last,) = results
        if self._last.correct or self._broken > REPAIRS_IN_A_ROW:
            self._broken = 0
        self._broken += not self._last.correct
        self._best_so_far.tell(results)


BEAM_WIDTH = 3
BEAM_PATIENCE = 6 * BEAM_WIDTH


@strategy("beam")
class Beam(Search):
    """The best few different programs, each asked about once a round, at the same time."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, BEAM_PATIENCE)
        self._archive = Archive()

    def ask(self) -> Sequence[Proposal]:
        """The fastest correct programs, then those that are nearly correct, then the first question again."""
        if self.note:
            return ()
        parents = [*self._archive.correct, *self._archive.broken][:BEAM_WIDTH]
        built = [Proposal(each.turn, history=False) for each in parents]
        return (*built, *[Proposal()] * (BEAM_WIDTH - len(built)))

    def tell(self, results: Sequence[Result]) -> None:
        self._archive.built_on(each.proposal.parent for each in results)
        for result in results:
            self._archive.add(result)
        self._best_so_far.tell(results)


ISLANDS = 2
SHOWN_BESIDE = 5
MIGRATION = 2
"""Every so many rounds each island gets the best program of the one before it."""
EVOLVE_PATIENCE = 20


@strategy("evolve")
class Evolve(Search):
    """Islands of programs: parents are drawn by speedup and novelty, and others are shown beside them."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, EVOLVE_PATIENCE)
        self._random = task.generator("evolve")
        self._islands = [Archive() for _ in range(ISLANDS)]
        self._rounds = 0

    def ask(self) -> Sequence[Proposal]:
        return () if self.note else [self._drawn(island) for island in self._islands]

    def tell(self, results: Sequence[Result]) -> None:
        for island, result in zip(self._islands, results, strict=False):  # the last round may be cut short
            island.built_on([result.proposal.parent])
            island.add(result)
        self._rounds += 1
        if self._rounds % MIGRATION == 0:
            self._migrate()
        self._best_so_far.tell(results)

    def _drawn(self, island: Archive) -> Proposal:
        """One of the island's correct programs, or the one that came farthest of the others."""
        correct = island.correct
        parents = [*correct, *island.broken[:1]]
        if not parents:
            return Proposal()
        # The place in the order counts, not how much faster: a lucky measurement would take all draws.
        weights = [1 / (place + 1) ** 2 / (island.children(each) + 1) for place, each in enumerate(parents)]
        (parent,) = self._random.choices(parents, weights)
        others = [each.turn for each in correct if each is not parent][:SHOWN_BESIDE]
        return Proposal(parent.turn, history=False, shown=tuple(reversed(others)))

    def _migrate(self) -> None:
        best = [island.correct[:1] for island in self._islands]
        for place, island in enumerate(self._islands):
            for each in best[place - 1]:
                island.add(each)
