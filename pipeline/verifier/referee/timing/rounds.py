"""The rounds of a measurement: candidate and baseline in alternating blocks on fresh inputs.

One round: as many slots as a secret number says are filled with inputs never used before, outputs are
poisoned, then baseline and candidate, each in a sandboxed process of its own, walk through the same slots,
in random order. The two processes are alike in everything but what they run: neither is timed on better
terms. A contestant reports a time for each call; the referee holds a clock of its own around the whole
block. The contestant is held still (all its processes stopped) whenever it is not its turn. Outputs of a
random half of the calls of every round are compared with the baseline's on the same inputs.

Each side has the inputs in memory of its own. One secret slot of each round is watched: on a CPU its inputs
are destroyed when all calls are made, before the places of the results are told. Results computed only when
they are copied have nothing to come from. On a GPU `Releases` sees to that. And some rounds are decoys: they
look like the others, but their inputs are the trials' variants, and their times do not count. A shortcut that
is right for drawn inputs only gives wrong results in them.

`Blocks` says how many calls a block holds: one of two numbers, at random. A candidate that does not know how
many calls come cannot spread over them the time that it hides. Example: where candidate and baseline take
2 ms each, a block on a GPU holds MAX_SLOTS calls. Where they take 20 ms each it holds three, since no block
should be longer than the backend's `longest_block_ms`.

On a CPU all inputs of a block lie readable, so its calls could share work. So at last some rounds hold one
call each (`claim.within_single`).

`Arrival` says whether the results of a block were there when its contestant said so. A candidate that
replies before its device is done has work of its calls off the clock, and by the time that outputs are
compared, all is there. So a few elements of a few places, others in each block, are read while the clock
still runs, for both sides alike. When all is done they must be what they were.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from kernelproof.types import ErrorStatistics, Rigor
from kernelproof.verifier.contestant.profiling import NO_KERNELS, TRACE_SECONDS
from kernelproof.verifier.referee import sides
from kernelproof.verifier.referee.environment import Readings, read_state
from kernelproof.verifier.referee.inputs.variants import Variant
from kernelproof.verifier.referee.timing import clock
from kernelproof.verifier.referee.timing.claim import LAUNCH_BOUND_MS, timing_of
from kernelproof.verifier.referee.timing.clock import Alone, Round
from kernelproof.verifier.referee.timing.disturbance import Repeats, Watch, in_thread
from kernelproof.verifier.referee.timing.releases import Kernels, Releases
from kernelproof.verifier.referee.timing.stopping import FAR_SLOWER, Stop, StoppingRule
from kernelproof.verifier.referee.timing.timed_outputs import Subject, TimedOutputs
from kernelproof.verifier.status_rules import Cause
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone
from kernelproof.verifier.workers.shared_memory import MAX_SLOTS, SharedSlot, SlotSide, in_memory, same_bits

ORDERS = ("BC", "CB")
"""Baseline first, or candidate first."""
FIRST_CALLS, WARM_CALLS = 2, 4
"""In the first block of the warm-up, and in the others. The fastest call of the last block tells how many a
block should hold: the time for loading a library or finding an algorithm once says nothing of later calls."""
FEWEST_CALLS = 3
"""Least calls of a block, so that numbers can differ and a block has more than its first call. One less for a
candidate that is far slower than the baseline: it would gain nothing by its first call."""
SHORT_BLOCK_MS = 8.0
"""A block holds MAX_SLOTS calls, or as many more as take this long in all, where there are slots. The error
of the referee's clock in a block is then a small part of a call, however short the call is."""
FEWEST_SHARE = 0.75
"""The smaller of the two numbers of calls is at least this share of the greater: each block tells as much."""
QUICK_SHARE = 0.5
"""Of those calls at rigor `quick` on a GPU, where the referee's clock runs for each call alone and an
interval may be wide. In 145 measurements on an H200 half of each block's calls gave the same speedup, within
0.1 %."""
RECOUNTED = 2
"""The numbers of calls are chosen again when, by a round's times, so many times as many calls fit a block."""


class Blocks:
    """The two numbers of calls, and the plan of the next rounds."""

    def __init__(self, slots: int, longest_ms: float, source: random.Random, share: float = 1.0) -> None:
        """`slots`: most calls of a block. `longest_ms`: blocks that would take longer hold fewer calls.
        `source` chooses, in secret. `share`: of the usual calls.
        """
        self._slots, self._longest_ms, self._random = slots, longest_ms, source
        self._usual, self._short_ms = min(math.ceil(share * MAX_SLOTS), slots), share * SHORT_BLOCK_MS
        self._planned: list[tuple[int, str]] = []
        self.counts: tuple[int, int] = (1, self._usual)
        """The smaller number of calls and the greater."""

    @property
    def most(self) -> int:
        """The greater number of calls."""
        return self.counts[1]

    @property
    def between_pairs(self) -> bool:
        """Whether no round is planned that belongs to an earlier one."""
        return not self._planned

    def next(self) -> tuple[int, str]:
        """Number of calls and order of the next round; the same again until it is `done`.

        Rounds come by two, ABBA or BAAB: the side that comes first has the cooler device.
        """
        if not self._planned:
            counts, orders = self._random.sample(self.counts, 2), self._random.sample(ORDERS, 2)
            self._planned = list(zip(counts, orders, strict=True))
        return self._planned[-1]

    def done(self) -> None:
        """The next round was made, and counts."""
        self._planned.pop()

    def wanted(self, last: Round) -> int:
        """How many calls a block should hold, by the times in this round."""
        if any(map(math.isnan, (*last.baseline, *last.candidate))):  # a time was impossible
            return self._usual
        baseline, candidate = min(last.baseline), min(last.candidate)
        slowest = max(baseline, candidate)
        count = min(self._slots, max(self._usual, math.ceil(self._short_ms / slowest)))
        fewest = FEWEST_CALLS if baseline > FAR_SLOWER * candidate else FEWEST_CALLS - 1
        return max(min(fewest, count), min(count, math.ceil(self._longest_ms / slowest)))

    def hold(self, many: int) -> None:
        """From now on blocks hold so many calls, or a secret number of fewer."""
        fewest = max(1, min(many - 1, math.ceil(FEWEST_SHARE * many)))
        self.counts = (self._random.randint(fewest, max(fewest, many - 1)), many)

    def recounted(self, last: Round) -> bool:
        """Whether, by this round, far more calls fit into a block than the warm-up showed: the candidate was
        slow only there. Blocks hold as many from now on, and planned rounds are dropped.
        """
        many = self.wanted(last)
        if many < RECOUNTED * self.most:
            return False
        self.hold(many)
        self._planned.clear()
        return True


SHARE = 0.125
"""Chance of a decoy before each round."""
AT_LEAST = 2
"""Decoys of each pair of processes."""
EARLY_CALLS = 3
"""Calls of a decoy that are queued early (`Releases`). The device needs milliseconds for each, since it runs
one process at a time."""
DEAR_MS = 250.0
"""A block that takes longer is no decoy where no speedup can be claimed."""


class Decoys:
    """Says when a decoy comes, and which of the variants that the candidate was right on it holds."""

    def __init__(self, variants: Sequence[Variant], source: random.Random) -> None:
        """`source` chooses, in secret."""
        self._variants, self._random = list(variants), source
        self._next: list[Variant] = []
        self._decoy_calls: list[int] = []
        """The calls of each decoy so far."""

    def comes_now(self) -> bool:
        """Whether the next block is a decoy: by chance."""
        return bool(self._variants) and self._random.random() < SHARE

    def are_missing(self, rounds: Sequence[Round], rule: StoppingRule) -> bool:
        """Whether there were too few decoys, or not each variant has been in one. One decoy is enough of a
        candidate that is clearly slower, or below the bar. None is needed of one that is far slower and holds
        the device long.
        """
        if self._decoy_calls and (rule.is_clearly_slower(rounds) or rule.is_below_bar(rounds)):
            return False
        if rule.is_far_slower(rounds) and rounds[-1].host_ms > DEAR_MS:
            return False
        most = len(self._variants)
        return most > 0 and (len(self._decoy_calls) < AT_LEAST or sum(self._decoy_calls) < most)

    def take(self, count: int) -> list[Variant]:
        """The next `count` variants. Each has its turn, so that few decoys show all of them."""
        while len(self._next) < count:
            self._next += self._random.sample(self._variants, len(self._variants))
        taken, self._next = self._next[:count], self._next[count:]
        self._decoy_calls.append(count)
        return taken


@dataclass
class Timed:
    """What the rounds gave; `failure` names the check that ended them early."""

    rounds: list[Round] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)
    """Why rounds were thrown away."""
    notes: list[str] = field(default_factory=list)
    """Notes of the watch over the blocks that made no block worthless: things seen, and things it cannot
    see."""
    power_capped: int = 0
    """Rounds after which the power cap limited the clocks."""
    checked_calls: int = 0
    beyond_trial: int = 0
    """As `TimedOutputs` counts them."""
    stop: Stop | None = None
    """Why no more rounds were made; None where a check failed."""
    failure: str | None = None
    bad: ErrorStatistics | None = None
    looks: list[Look] = field(default_factory=list)
    """At the kernels in a block of the candidate's, one for each pair of processes."""
    single: list[Round] = field(default_factory=list)
    """Rounds of one call each."""
    alone: dict[int, list[Alone]] = field(default_factory=dict)
    """The baseline's blocks after a pair's candidate was gone, by the pair's number."""
    before: Readings = field(default_factory=dict)
    after: Readings = field(default_factory=dict)

    def record_wrong(self, bad: ErrorStatistics | None) -> None:
        """Takes down an output that is wrong, if it is the first failure."""
        if bad is not None and self.failure is None:
            self.failure, self.bad = "timed_outputs", bad


Look = tuple[dict[str, Any], int, str]
"""The candidate's report of a block that was watched, the number of calls in it, and what shows that other
kernels were timed, if anything."""

PLACES, ELEMENTS = 4, 16
"""Places that are looked at in a block, and elements of each output there. A candidate that leaves two of
sixteen results for later is found with a chance of 45 % in each block."""


class Arrival:
    """What is looked at in one block. Made before its clock starts."""

    def __init__(self, places: Sequence[Sequence[torch.Tensor]], source: random.Random) -> None:
        """`places`: the output tensors of each call's place; `source` chooses, in secret, ELEMENTS of each
        tensor."""
        chosen = source.sample(list(places), min(PLACES, len(places)))
        self._memory = [in_memory(output) for outputs in chosen for output in outputs if output.numel()]
        secret = torch.Generator().manual_seed(source.getrandbits(62))
        self._where = [
            torch.randint(len(flat), (ELEMENTS,), generator=secret).to(flat.device) for flat in self._memory
        ]
        self._seen: list[torch.Tensor] = []

    def look(self) -> None:
        """Reads the elements as they are now. The caller waits for the device."""
        self._seen = [flat[where] for flat, where in zip(self._memory, self._where, strict=True)]

    def changed(self) -> bool:
        """Whether one of them is no longer what it was."""
        now = [flat[where] for flat, where in zip(self._memory, self._where, strict=True)]
        return not all(map(torch.equal, now, self._seen))


WARM_UP_SECONDS = 0.2
OURS_TIMES = 1.1
"""What the referee's device does for a call of the candidate's takes so many times what it took in the
baseline's last block, at most. A process that has work on the device gets slices of milliseconds."""
SINGLE_ROUNDS, LATE_SINGLE_ROUNDS = 8, 4
"""Rounds of one call each on a CPU, and so many where they take long."""
SINGLE_TIME = 0.25
"""They take long beyond this share of the time that a pair of processes has."""
ALONE_ROUNDS, QUICK_ALONE_ROUNDS = 5, 3
"""Blocks of the baseline after the candidate's process is gone, of each number of calls. One where the
candidate is clearly slower: the others would only make a claim exact."""


@dataclass
class _Watched:
    """The slot of a round whose inputs the referee has to itself."""

    index: int
    private: list[Any]
    seeds: list[int]
    """Of torch's generators, a seed for each slot's call, the same for both sides."""
    early: Sequence[int] = ()
    """Calls that are queued while their inputs are masked (`Releases`)."""
    changed: bool = False
    """Whether the candidate changed them."""


def _beyond(usual: float, began: float) -> float:
    """The seconds since `began` (`monotonic`) beyond a usual round. A measurement's time does not count them:
    otherwise a candidate could idle in a round that does not count, and be judged by few rounds."""
    return max(0.0, time.monotonic() - began - usual)


class Stopwatch:
    """Runs the rounds of one pair of processes."""

    def __init__(
        self,
        subject: Subject,
        candidate: Contestant,
        baseline: Contestant,
        watch: Watch,
        *,
        trusted: bool = False,
        looks: bool = False,
        patience: float = 0.0,
    ) -> None:
        """`trusted`: the candidate is a baseline of ours, and gets the places before it calls. `looks`: at
        whose kernels run, in one more block. `patience`: a block of the baseline's may take so many seconds
        longer than its calls may, as the candidate is ended before."""
        self._looks, self._patience = looks, patience
        self.filled: list[int] = []
        """The number of slots, each time that some were filled with inputs: for rounds, decoys and looks."""
        self.comparing_seconds = 0.0
        """Spent on comparing outputs so far."""
        self._trusted, self._outputs = trusted, TimedOutputs(subject)
        self._subject, self._slots = subject, subject.slots
        self._settings, self._device = subject.settings, subject.device
        self._candidate, self._baseline = candidate, baseline
        self._watch = watch
        self._kernels = Kernels(self._device)
        self._releases, self._reply = Releases(self._kernels), dict[str, Any]()
        """Both of the candidate's last block."""
        self._ours_ms = math.inf
        """So much of what the referee's device does in a call is taken off, at most."""
        self._impossible = 0
        """Rounds in which the candidate reported a time that no call can have taken."""
        self._destroys = self._device.type == "cpu" and not trusted
        """Whether the watched slot's inputs are destroyed when all calls are made. On a GPU every result's
        digest was named by then."""
        self._held_ms = 0.0
        """Processor milliseconds that the side of the last block used while it was held before it."""
        self._arrivals: list[Arrival] = []
        """What was looked at in the candidate's blocks, and is not compared yet."""
        self._disturbances: list[str] = []
        """Of the blocks of the current round."""
        self._waited: set[bool] = set()
        """Whose blocks of the current round waited for a core: the baseline's (True), the candidate's."""
        self._repeats = Repeats()
        self._random = random.SystemRandom()
        self._decoys = Decoys([] if trusted else subject.variants, self._random)
        longest_ms = timing_of(self._settings.backend).longest_block_ms
        quick = self._settings.rigor is Rigor.QUICK and self._device.type == "cuda"
        share, self._alone_rounds = (QUICK_SHARE, QUICK_ALONE_ROUNDS) if quick else (1.0, ALONE_ROUNDS)
        self._blocks = Blocks(len(subject.slots), longest_ms, self._random, share)
        self._rule = StoppingRule.of(self._settings, trusted=trusted)

    def run(self, session: int = 0) -> Timed:
        """Rounds until the stopping rule says why to stop. Raises what `Contestant.ask` raises."""
        timed, before = Timed(), in_thread(partial(read_state, self._device))
        self._warm_up(session)
        timed.before = before.result()
        began = time.monotonic()
        usual = 0.0  # seconds of the last round that counts
        while timed.failure is None and timed.stop is None:
            at = time.monotonic()
            if self._decoys.comes_now():
                self._decoy(timed)
                began += _beyond(usual, at)
                continue
            done = self._counted(timed, session)
            if done is None:
                began += _beyond(usual, at)
                continue
            usual = time.monotonic() - at
            timed.rounds.append(done)
            if self._blocks.recounted(done):
                timed.rounds.clear()  # few calls a block say little of what a call hides
                began = time.monotonic()
            if self._blocks.between_pairs:
                timed.stop = self._rule.decide(timed.rounds, time.monotonic() - began)
        after = in_thread(partial(read_state, self._device))
        while timed.failure is None and self._decoys.are_missing(timed.rounds, self._rule):
            self._decoy(timed)
        if timed.failure is None and self._wants_look(timed.rounds):
            timed.looks.append(self._look(timed))
        self._single_calls(timed, session)
        timed.after, timed.beyond_trial = after.result(), self._outputs.beyond_trial
        timed.notes, timed.power_capped = list(self._watch.notes), self._watch.power_capped
        return timed

    def _counted(self, timed: Timed, session: int) -> Round | None:
        """The next round; None when it was disturbed, and is repeated."""
        self._disturbances.clear()
        self._waited.clear()
        done = self._round(timed, *self._blocks.next(), session)
        disturbance = next(iter(self._disturbances), None)
        may_repeat = self._repeats.allowed(self._waited, len(timed.disturbed), len(timed.rounds))
        may_repeat |= any(map(math.isnan, done.candidate))  # once, as a fault of the machine's clock
        if disturbance is not None and may_repeat and timed.failure is None:
            timed.disturbed.append(disturbance)
            return None
        self._blocks.done()
        return done

    def _single_calls(self, timed: Timed, session: int) -> None:
        """Rounds of one call each where calls could share their work, and the candidate makes a claim."""
        rule, began = self._rule, time.monotonic()
        if self._device.type != "cpu" or self._trusted or timed.failure is not None:
            return
        if rule.is_clearly_slower(timed.rounds) or rule.is_below_bar(timed.rounds):
            return
        usual, self._blocks.counts = self._blocks.counts, (1, 1)
        wanted = SINGLE_ROUNDS
        while timed.failure is None and len(timed.single) < wanted:
            if (done := self._counted(timed, session)) is not None:
                timed.single.append(done)
            if time.monotonic() - began > SINGLE_TIME * self._settings.most_seconds:
                wanted = LATE_SINGLE_ROUNDS
        self._blocks.counts = usual

    def baseline_alone(self, timed: Timed, session: int) -> None:
        """Measures the baseline once more, after the candidate's process is gone."""
        found = timed.alone.setdefault(session, [])
        self._baseline.pause()
        slower = self._rule.is_clearly_slower(timed.rounds)
        for count in self._blocks.counts * (1 if slower else self._alone_rounds):
            slots = self._slots[:count]
            arguments = self._draw()  # one set for all: the candidate is gone, and cannot gain by knowing it
            # Written anew as in a round, so that caches hold what they hold there.
            watched = self._fill(slots, slots, [partial(list, arguments)] * count)
            found.append(Alone(*self._block(self._baseline, slots, slots, watched)))

    def seconds_alone(self) -> float:
        """Seconds in which as many slots as any round had are filled, and the baseline makes its block. The
        candidate's process is gone."""
        slots, began = self._slots[: max(self.filled, default=1)], time.monotonic()
        for _ in range(ALONE_ROUNDS):
            self._baseline.pause()
            self._block(self._baseline, slots, slots, self._fill(slots, slots, [self._draw] * len(slots)))
        return (time.monotonic() - began) / ALONE_ROUNDS

    def _warm_up(self, session: int) -> None:
        """Lets clocks and caches settle, and finds out how many calls a block should hold."""
        until = time.monotonic() + WARM_UP_SECONDS
        # Few at first: sixteen calls of a candidate that is a hundred times slower take as long as the rest.
        done = self._round(Timed(), min(FIRST_CALLS, len(self._slots)), ORDERS[0], session)
        while time.monotonic() < until:
            done = self._round(Timed(), min(WARM_CALLS, self._blocks.wanted(done)), ORDERS[0], session)
        self._blocks.hold(self._blocks.wanted(done))
        if self._blocks.most > FIRST_CALLS:  # maps the slots, and finds memory for as many results
            self._round(Timed(), self._blocks.most, ORDERS[0], session)

    def _places(self, count: int) -> list[SharedSlot]:
        """Whose places the results of so many calls go to."""
        return self._random.sample([*self._slots, *self._subject.spare], count)

    def _draw(self) -> list[Any]:
        return self._subject.oracle.loaded.draw(self._subject.next_seed(), self._device)

    def _round(self, timed: Timed, count: int, order: str, session: int) -> Round:
        slots = self._random.sample(list(self._slots), count)
        places = self._places(count)
        self._candidate.pause()  # what it could compute from inputs before its turn would cost no time
        self._baseline.pause()
        watched = self._fill(slots, places, [self._draw] * count)
        baseline: list[float] = []
        candidate: list[float] = []
        host = baseline_host = waited = held = 0.0
        for who in order:
            if who == "B":
                baseline, baseline_host = self._block(self._baseline, slots, places, watched)
            else:
                candidate, host = self._block(self._candidate, slots, places, watched)
                waited, held = self._watch.waited_ms, self._held_ms
                watched.changed |= self._changed(slots, watched)
        self._watch.ask_gpu()
        if watched.changed:
            timed.failure = timed.failure or "inputs_unchanged"
        if any(map(math.isnan, candidate)):
            if self._impossible:
                timed.failure = timed.failure or "inside_clock"
            self._impossible += 1
            self._disturbances.append("it reported a time that no call can have taken")
        self._check_block(timed, places, self._check_outputs(timed, slots, places, watched))
        if trouble := self._watch.gpu_trouble(patient=self._rule.may_stop_after(len(timed.rounds) + 1)):
            self._disturbances.append(trouble)
            self._waited |= {False} if self._watch.joined else set()
        # What it did before its turn, it did not have to do in it. So it counts, and gains nothing.
        return Round(order, baseline, candidate, host + held, baseline_host, session, waited, held)

    def _decoy(self, timed: Timed) -> None:
        """A block of the candidate's whose times do not count. Its inputs are variants that it was right on
        in the trials. A shortcut that is right for drawn inputs only is wrong here."""
        variants = self._decoys.take(self._random.choice(self._blocks.counts))
        early = self._random.sample(range(len(variants)), min(EARLY_CALLS, len(variants)))
        draws = [partial(self._unusual, each) for each in variants]
        slots, places, watched = self._uncounted(timed, draws, early=early)
        with self._comparing():
            for slot, place, variant, seed in zip(slots, places, variants, watched.seeds, strict=True):
                timed.record_wrong(self._outputs.wrong_decoy(place, variant, slot.values(), seed))
        self._check_block(timed, places, range(len(places)))
        timed.checked_calls += len(places)

    def _uncounted(
        self,
        timed: Timed,
        draws: Sequence[Callable[[], list[Any]]],
        how: dict[str, Any] | None = None,
        early: Sequence[int] = (),
    ) -> tuple[list[SharedSlot], list[SharedSlot], _Watched]:
        """A block of the candidate's alone on these draws: its slots, its places and what is watched. `how`:
        as `_block` has it. `early`: calls that are queued early."""
        slots = self._random.sample(list(self._slots), len(draws))
        places = self._places(len(draws))
        self._candidate.pause()
        self._baseline.pause()
        watched = self._fill(slots, places, draws)
        watched.early = early
        self._block(self._candidate, slots, places, watched, how)
        if watched.changed or self._changed(slots, watched):
            timed.failure = timed.failure or "inputs_unchanged"
        return slots, places, watched

    def _wants_look(self, rounds: Sequence[Round]) -> bool:
        return self._looks and not (self._rule.is_far_slower(rounds) or self._rule.is_below_bar(rounds))

    def _look(self, timed: Timed) -> Look:
        """A block like any other to the candidate, in which the profiler records whose kernels run. On a CPU
        a dispatch mode sees another."""
        fastest = min(clock.inside_ms(timed.rounds), clock.baseline_ms(timed.rounds))
        profiled = {"watched": "profiled", "timed_next": fastest < LAUNCH_BOUND_MS}  # once more, as graphs
        count = self._random.choice(self._blocks.counts)  # of all of them: what is seen is divided by it
        for _ in range(2):  # once may be chance
            report = self._watched_block(timed, count, profiled)
            others = clock.other_work(report.get("busy"), count, timed.rounds)
            if timed.failure is not None or not (others or report.get("trouble") == NO_KERNELS):
                break
        if self._device.type == "cpu" and not report.get("interpreted"):  # which would take long
            with suppress(ContestantFailed):  # not every program runs in such a mode
                seen = self._watched_block(timed, count, {"watched": "dispatched"})
                report["dispatched"] = seen.get("dispatched")
        return report, count, others

    def _watched_block(self, timed: Timed, count: int, how: dict[str, Any]) -> dict[str, Any]:
        _, places, watched = self._uncounted(timed, [self._draw] * count, how)
        place, seed = places[watched.index], watched.seeds[watched.index]
        with self._comparing():
            timed.record_wrong(self._outputs.wrong(place, watched.private, seed))
        self._check_block(timed, places, range(count))
        timed.checked_calls += 1
        report = self._reply.get("profile")
        return report if isinstance(report, dict) else {}

    def _unusual(self, variant: Variant) -> list[Any]:
        drawn = self._draw()
        return variant.apply(drawn, self._subject.next_seed()) or drawn

    def _fill(
        self,
        slots: Sequence[SharedSlot],
        places: Sequence[SharedSlot],
        draws: Sequence[Callable[[], list[Any]]],
    ) -> _Watched:
        """Fills every slot with new inputs, and poisons the places of the results. Returns the watched
        slot's inputs."""
        self.filled.append(len(slots))
        for place in places:
            place.poison()
        index, private = self._random.randrange(len(slots)), list[Any]()
        for number, (slot, draw) in enumerate(zip(slots, draws, strict=True)):
            arguments = draw()
            slot.take(arguments)
            if number == index:
                private = arguments
            del arguments
        sides.make_room(self._device, slots[0].input_bytes)
        return _Watched(index, private, [self._random.getrandbits(62) for _ in slots])

    def _changed(self, slots: Sequence[SharedSlot], watched: _Watched) -> bool:
        """Whether the candidate changed its inputs; where the watched slot's are destroyed, the others."""
        if self._trusted or not self._releases.complete:
            return False  # inputs that were not released are masked still
        left = [slot for number, slot in enumerate(slots) if number != watched.index or not self._destroys]
        return not all(same_bits(list(slot.views), list(slot.baseline.views)) for slot in left)

    def _block(
        self,
        side: Contestant,
        slots: Sequence[SharedSlot],
        places: Sequence[SharedSlot],
        watched: _Watched,
        how: dict[str, Any] | None = None,
    ) -> tuple[list[float], float]:
        """One side's block: its times, and the referee's clock around it, in milliseconds.

        On a GPU that is the clock around a call, times their number: see `Releases.outer_ms`. On a CPU it
        stops while the referee works and holds the side still. It runs until all processes of the side are at
        rest, so it includes the work of a process that cannot be stopped at once. `how`: a look at the
        kernels, which takes longer.
        """
        is_baseline = side is self._baseline
        ours = 0.0  # milliseconds that the referee itself took between the calls and their results' delivery
        prepared = [slot.side(baseline=is_baseline) for slot in slots]
        ends = [place.side(baseline=is_baseline) for place in places]
        message: dict[str, Any] = {"op": "time", "slots": [each.arguments for each in prepared]}
        secret = watched.seeds if self._subject.seeded else None
        if secret is not None and self._device.type == "cpu":
            message["seeds"] = secret
        inputs = [each.views for each in prepared]
        releases = Releases(self._kernels, inputs, secret, side.page, watched.early)
        sides.settled(self._device)

        def tell_places(request: dict[str, Any]) -> dict[str, Any] | None:
            nonlocal ours
            if not (self._trusted or releases.end()):  # a trusted side may know them beforehand
                return None
            if self._destroys:
                ours = self._destroy(side, prepared[watched.index], watched)
            return {"places": [list(end.output_specs) for end in ends]}

        seconds = self._settings.call_seconds * len(slots) + (self._patience if is_baseline else 0.0)
        if how is not None:
            message, seconds = message | how, seconds + TRACE_SECONDS
        arrival = Arrival([end.outputs for end in ends], self._random)
        self._watch.before()
        self._held_ms = side.look()
        start = time.perf_counter_ns()
        side.resume()
        try:
            answers = {"next": releases.next_call, "places": tell_places}
            with self._kernels.of(side.page):
                reply = side.ask(message, seconds=seconds, answers=answers, meanwhile=releases.serve)
        except (ContestantFailed, ContestantGone) as error:
            if is_baseline:  # no fault of the candidate's
                raise sides.baseline_failed(error) from None
            raise
        arrival.look()
        sides.settled(self._device)
        host = (side.halt() - start) / 1e6 - ours
        if is_baseline:
            self._ours_ms = OURS_TIMES * releases.ours_ms
        if (outer := releases.outer_ms(self._ours_ms)) is not None:
            host = outer * len(slots)
        if is_baseline and not releases.complete:
            raise Cause.BASELINE_FAILED.ended("the baseline's process named no digest of a timed call")
        side.pause()
        self._arrivals += [] if is_baseline else [arrival]
        if trouble := self._watch.after():
            self._disturbances.append(trouble)
            self._waited.add(is_baseline)
        if not is_baseline:
            self._releases, self._reply = releases, reply
        return clock.believable_times(reply.get("ms"), len(slots)), host

    def _destroy(self, side: Contestant, slot: SlotSide, watched: _Watched) -> float:
        """Compares the watched slot's inputs and overwrites them, while the side is held still. Returns the
        milliseconds from the moment in which all its processes were at rest."""
        halted, same = side.halt(), same_bits(list(slot.views), watched.private)
        watched.changed |= not same and side is self._candidate
        slot.scramble(self._subject.aliased)
        ours = (time.perf_counter_ns() - halted) / 1e6
        side.resume()
        return ours

    def _check_block(self, timed: Timed, places: Sequence[SharedSlot], calls: Iterable[int]) -> None:
        """Whether the candidate's block had its results when it replied, and those of these `calls` are what
        they were when the next one began."""
        if any(arrival.changed() for arrival in self._arrivals):
            timed.failure = timed.failure or "results_late"
        if not self._trusted and any(self._releases.is_another(call, places[call]) for call in calls):
            timed.failure = timed.failure or "results_changed"
        self._arrivals.clear()

    def _check_outputs(
        self, timed: Timed, slots: Sequence[SharedSlot], places: Sequence[SharedSlot], watched: _Watched
    ) -> list[int]:
        """Compares the outputs of a random half of the slots, the watched one always among them. Returns
        which ones.

        The watched one's output is compared with the reference on its private inputs: inputs changed under
        the baseline and put back are seen.
        """
        others = [index for index in range(len(slots)) if index != watched.index]
        chosen = self._random.sample(others, len(others) // 2)
        place, seeds = places[watched.index], watched.seeds
        with self._comparing():
            timed.record_wrong(self._outputs.wrong(place, watched.private, seeds[watched.index]))
            for index in chosen:
                timed.record_wrong(self._outputs.wrong_beside(slots[index], places[index], seeds[index]))
        timed.checked_calls += 1 + len(chosen)
        return [watched.index, *chosen]

    @contextmanager
    def _comparing(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.comparing_seconds += time.monotonic() - began
