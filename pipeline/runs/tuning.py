"""A tuning: trials of a source's parameters, each a verification; then the best one beside the original.

Every trial is stored as an attempt of a run of kind `tune`, as soon as it is over. A tuning that was killed
asks its proposer the same questions again, in the same order, and takes from the store what is there.
"""

from __future__ import annotations

import math
import random
import time
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import anyio
import anyio.to_thread

from kernelproof.backends import backend
from kernelproof.db.store import Store
from kernelproof.errors import UsageError, install_command
from kernelproof.hashing import sha256_text
from kernelproof.jobs import Job, Judge, NewAttempt
from kernelproof.jobs.judge import FILE_MODEL
from kernelproof.jobs.leases import LeaseKeeper
from kernelproof.runs.candidates import candidate_from_text
from kernelproof.runs.shutdown import Report, Shutdown
from kernelproof.runs.tuning_template import MOST_COUNTED, Template, Values
from kernelproof.types import Interval, Measurement, Problem, RunSettings, Status, VerifySettings
from kernelproof.types.measurement import quotient_reach
from kernelproof.verifier.engine.engine import Engine

_LOOKS = 20
"""Proposals of Optuna's that were tried before, or are not allowed, until another way is taken."""
_DRAWS = 1_000


class Proposer(Protocol):
    """Proposes each combination at most once, the source's own first."""

    name: str

    def ask(self) -> Values | None:
        """The next combination; None when none is left."""

    def tell(self, values: Values, score: float | None) -> None:
        """How good a combination is, the more the better; None: it failed."""


def proposer_for(template: Template, trials: int, seed: int) -> Proposer:
    """Every combination where `trials` are enough for that, else what Optuna proposes.

    Raises UsageError where Optuna is needed and not installed.
    """
    if template.allowed is not None and template.allowed <= trials:
        return Grid(template.original, list(template.combinations()))
    return Tpe(template, seed)


class Grid:
    """All combinations, those near the source's own first."""

    name = "all combinations"

    def __init__(self, original: Values, combinations: list[Values]) -> None:
        def distance(values: Values) -> tuple[int, Values]:
            return sum(one != own for one, own in zip(values, original, strict=True)), values

        self._left = sorted(combinations, key=distance, reverse=True)

    def ask(self) -> Values | None:
        return self._left.pop() if self._left else None

    def tell(self, values: Values, score: float | None) -> None:
        pass


class Tpe:
    """Optuna's tree-structured Parzen estimator, over the positions of the values in their lists."""

    name = "Optuna's TPE"

    def __init__(self, template: Template, seed: int) -> None:
        optuna = _optuna(template)
        self._template, self._random = template, random.Random(seed)
        self._pruned = optuna.trial.TrialState.PRUNED
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._trials: dict[Values, Any] = {}
        self._scores: dict[Values, float | None] = {}
        self._enqueue(template.original)

    def ask(self) -> Values | None:
        for _ in range(_LOOKS):
            trial, values = self._drawn()
            if values in self._trials:
                self._settle(trial, self._scores.get(values))
            elif not self._template.allows(values):
                self._settle(trial, None)
            else:
                self._trials[values] = trial
                return values
        unseen = self._unseen()
        if unseen is not None:
            self._enqueue(unseen)
            self._trials[unseen] = self._drawn()[0]
        return unseen

    def tell(self, values: Values, score: float | None) -> None:
        self._scores[values] = score
        self._settle(self._trials[values], score)

    def _settle(self, trial: Any, score: float | None) -> None:
        """What failed, or is not allowed, ranks behind all that did not."""
        if score is None:
            self._study.tell(trial, state=self._pruned)
        else:
            self._study.tell(trial, score)

    def _enqueue(self, values: Values) -> None:
        places = zip(self._template.parameters, values, strict=True)
        self._study.enqueue_trial({one.name: one.values.index(value) for one, value in places})

    def _drawn(self) -> tuple[Any, Values]:
        trial = self._study.ask()
        return trial, self._each(lambda name, last: trial.suggest_int(name, 0, last))

    def _each(self, choose: Callable[[str, int], int]) -> Values:
        return tuple(one.values[choose(one.name, len(one.values) - 1)] for one in self._template.parameters)

    def _unseen(self) -> Values | None:
        """One that was not asked for yet, where Optuna comes back to the same ones."""
        if self._template.size <= MOST_COUNTED:
            left = [values for values in self._template.combinations() if values not in self._trials]
            return self._random.choice(left) if left else None
        for _ in range(_DRAWS):
            values = self._each(lambda _, last: self._random.randint(0, last))
            if values not in self._trials and self._template.allows(values):
                return values
        return None


def _optuna(template: Template) -> Any:
    try:
        import optuna
    except ImportError:
        raise UsageError(
            f"{template.size} combinations are more than --trials allows, and the package optuna, which "
            f"chooses among them, is missing; install it ({install_command('tune')}), or give more "
            "--trials, or declare fewer values"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


AHEAD, AHEAD_ON_GPU = 3, 8
"""Trials between build and verdict. A proposal knows what came of all but the AHEAD - 1 before it. Another
number here leads to other proposals. On a GPU a trial takes 3 s and its build 11 s on a core of its own; on a
CPU the cores that build are those that measure."""
CONFIRMED = 3
"""So many of the best are verified again until one is correct."""
TUNE_MODEL = "tune"
"""What runs of kind `tune` have in place of a model."""


@dataclass(frozen=True)
class TuningTask:
    template: Template
    problem: Problem
    trial: VerifySettings
    confirm: VerifySettings
    name: str | None = None
    parent: int | None = None
    """The attempt that the source comes from, if it comes from one."""

    @property
    def trials_run(self) -> RunSettings:
        """The run of the trials: other values, conditions or settings are another one."""
        template = self.template
        what = {
            "source_sha256": sha256_text(template.source),
            "parameters": {one.name: list(one.values) for one in template.parameters},
            "where": [limit.text for limit in template.limits],
        }
        return RunSettings(
            name=self.name, kind="tune", model=TUNE_MODEL, sampling={"tune": what}, verify=self.trial
        )

    @property
    def key(self) -> str:
        """What only one command at a time may work on."""
        return f"tune:{self.trials_run.key}:{self.problem.sha256}"

    @property
    def confirming_run(self) -> RunSettings:
        """The run of the last two verifications, which count as those of files do."""
        tuned = {"tuned": self.trials_run.key}
        return RunSettings(
            name=self.name, kind="verify", model=FILE_MODEL, sampling=tuned, verify=self.confirm
        )


@dataclass(frozen=True)
class Trial:
    values: Values
    status: Status
    reason: str
    measurement: Measurement | None
    attempt_id: int
    kept: bool

    @property
    def score(self) -> float | None:
        """What the proposer is told: the logarithm of the speedup; None for what failed."""
        return math.log(self.measurement.speedup) if self.correct and self.measurement else None

    @property
    def correct(self) -> bool:
        """Correct and measured."""
        return self.status is Status.CORRECT and self.measurement is not None

    @property
    def rank(self) -> tuple[float, float]:
        """By what is surely reached, then by the speedup; the more the better."""
        m = self.measurement
        return (m.claimed, m.speedup) if m is not None and self.correct else (0.0, 0.0)


@dataclass(frozen=True)
class Gain:
    """One kernel's speed over another's, both measured against the same baseline."""

    ratio: float
    interval: Interval
    shown: bool
    """Whether it is more than the intervals and the resolutions of both measurements allow by chance."""
    noise: float = 1.0
    """The ratio that the coarser of both resolutions allows by chance, whatever the intervals say."""


@dataclass
class Tuned:
    task: TuningTask
    trials: list[Trial] = field(default_factory=list)
    """In the order in which they were proposed; the first is the original."""
    original: Trial | None = None
    best: Trial | None = None
    """The best of the trials, confirmed; None where none is better than the original."""
    stopped: bool = False

    @property
    def ranked(self) -> list[Trial]:
        return sorted((one for one in self.trials if one.correct), key=lambda one: one.rank, reverse=True)

    @property
    def progress(self) -> dict[str, Any]:
        """What `kernelproof runs status` says of it."""
        return {"trials": len(self.trials), "correct": len(self.ranked)}

    @property
    def gain(self) -> Gain | None:
        if self.best is None or self.original is None:
            return None
        return gain(self.original.measurement, self.best.measurement)

    @property
    def chosen(self) -> Values | None:
        """The values to take: the best ones where they are faster for sure, else the original's.

        None where the original is not correct.
        """
        if self.original is None or not self.original.correct:
            return None
        improved = self.best is not None and self.gain is not None and self.gain.shown
        return self.best.values if self.best is not None and improved else self.task.template.original


def gain(before: Measurement | None, after: Measurement | None) -> Gain | None:
    """The gain of the second measurement over the first; None where one is missing."""
    if before is None or after is None:
        return None
    change, coarser = math.log(after.speedup / before.speedup), max(before.resolution, after.resolution)
    down, up = quotient_reach(after, before)
    return Gain(
        ratio=math.exp(change),
        interval=Interval(low=math.exp(change - down), high=math.exp(change + up)),
        shown=change > max(down, coarser),
        noise=math.exp(min(coarser, 700.0)),  # a larger power is no float
    )


async def tune(
    task: TuningTask,
    proposer: Proposer,
    engine: Engine,
    store: Store,
    *,
    trials: int,
    seconds: float | None = None,
    config: dict[str, Any] | None = None,
    on_trial: Callable[[Trial], None] = lambda _: None,
    on_wait: Callable[[], None] = lambda: None,
    unread: Callable[[], bool] = lambda: False,
) -> Tuned:
    """Tries up to `trials` combinations, for about `seconds`, and confirms the best one.

    `config` is stored beside the runs. Where another command does the same, this one waits (`on_wait`), and
    then takes what that one stored. Nothing more is tried when the original itself is not correct.

    Raises what `Engine.verify` raises, and OutputClosed when `on_trial` or `unread` says that nobody reads
    any more.
    """
    shutdown, leases = Shutdown(on_trial, unread), LeaseKeeper(store)
    outcome, ended = Tuned(task), "done"
    search = _Search(task, proposer, Judge(engine, store), shutdown.hear)
    what = {**(config or {}), "trials": trials, "seconds": seconds}
    what = {"problem": task.problem.id, **what, **task.trials_run.sampling["tune"]}
    runs = [store.begin_run(task.trials_run)]
    report = Report(store, leases.owner, task.name, runs, {"tune": what}, lambda: outcome.progress)
    try:
        async with shutdown.work(engine) as group:
            group.start_soon(report.run)
            leases.start(group)
            await leases.hold(task.key, on_wait)
            await search.run(outcome, trials, None if seconds is None else time.monotonic() + seconds)
            await search.confirm(outcome)
    except BaseException as error:
        ended = f"stopped: {error}"
        raise
    finally:
        outcome.stopped = shutdown.stopped
        leases.close()
        report.close(shutdown.words(ended))
    shutdown.raise_if_gone("what was verified is stored, and the same command continues")
    return outcome


@dataclass
class _Pending:
    values: Values
    done: anyio.Event = field(default_factory=anyio.Event)
    trial: Trial | None = None


class _Search:
    def __init__(
        self, task: TuningTask, proposer: Proposer, judge: Judge, hear: Callable[[Trial], None]
    ) -> None:
        self._task, self._proposer, self._judge, self._hear = task, proposer, judge, hear

    async def run(self, outcome: Tuned, trials: int, deadline: float | None) -> None:
        """The trials. Results are told in the order of the proposals, whichever is over first."""
        tried = _Trials(self._task, self._task.trials_run, self._judge)
        window: deque[_Pending] = deque()
        ahead = AHEAD_ON_GPU if backend(self._task.trial.backend).on_gpu else AHEAD
        asked, more = 0, True
        async with anyio.create_task_group() as group:
            while True:
                # The original comes alone: where it fails, all others are left out.
                while more and asked < trials and len(window) < (ahead if outcome.trials else 1):
                    late = deadline is not None and time.monotonic() >= deadline
                    values = None if asked and late else self._proposer.ask()
                    if values is None:
                        more = False
                        break
                    asked += 1
                    window.append(_Pending(values))
                    group.start_soon(self._one, tried, window[-1])
                if not window:
                    return
                head = window.popleft()
                await head.done.wait()
                assert head.trial is not None
                self._proposer.tell(head.values, head.trial.score)
                outcome.trials.append(head.trial)
                tried.bar = max(tried.bar, head.trial.rank[0])
                self._hear(head.trial)
                more = more and outcome.trials[0].correct

    async def confirm(self, outcome: Tuned) -> None:
        """Verifies the original and the best trial on fresh inputs, at the rigor that was asked for."""
        if not outcome.ranked or not outcome.trials[0].correct:
            return
        tried = _Trials(self._task, self._task.confirming_run, self._judge)
        original = self._task.template.original
        outcome.original = await _in_thread(partial(tried.trial, original))
        better = [one for one in outcome.ranked if one.rank > outcome.trials[0].rank]
        for trial in better[:CONFIRMED]:
            confirmed = await _in_thread(partial(tried.trial, trial.values))
            if confirmed.correct:
                outcome.best = confirmed
                return

    async def _one(self, tried: _Trials, pending: _Pending) -> None:
        pending.trial = await _in_thread(partial(tried.trial, pending.values))
        pending.done.set()


async def _in_thread(work: Callable[[], Trial]) -> Trial:
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


class _Trials:
    """The combinations of one run, each verified once: what the store has is taken from it."""

    def __init__(self, task: TuningTask, run: RunSettings, judge: Judge) -> None:
        self._task, self._run, self._judge = task, run, judge
        self.bar = 0.0
        """The speedup that the best trial so far surely reaches. A trial that is surely slower is timed for
        less long."""

    def trial(self, values: Values) -> Trial:
        """A combination's verdict. Raises what `Judge.judge` raises."""
        source, settings = self._task.template.filled(values), self._run.verify
        given = candidate_from_text("tune", source, self._task.problem)
        raw = {"tune": self._task.template.named(values)}
        keep = NewAttempt(self._run, given.response.model_copy(update={"raw": raw}), self._task.parent)
        if self.bar:
            settings = settings.model_copy(update={"bar": self.bar})
        verdict = self._judge.judge(Job(self._task.problem, given.extraction, settings, keep))
        assert verdict.attempt_id is not None
        reason = verdict.verification.reason if verdict.verification else verdict.extraction.reason
        found = (verdict.status, reason, verdict.measurement, verdict.attempt_id, verdict.reused)
        return Trial(values, *found)
