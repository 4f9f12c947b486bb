"""The answers of the query layer: frozen records for the terminal, pages and exports."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kernelproof.db.scores.filters import Filters
from kernelproof.types import ErrorClass, Flag, FrozenRecord, Interval, Pace, Roofline, Setting, Status

ViewName = Literal["model", "problem", "kernel", "run", "template", "strategy"]
Source = Literal["model", "file", "tuner"]
"""Answers of models and programs that somebody published; candidates given as files; a tuner's trials. They
are never in one table."""


class Rate(FrozenRecord):
    """A part of a whole, with Wilson's 95 % interval."""

    part: int
    whole: int
    share: float | None
    """part / whole; None where the whole is 0."""
    interval: Interval | None


class Mean(FrozenRecord):
    """A mean, median or ratio over problems, with a 95 % interval."""

    value: float | None
    """None where nothing is known."""
    interval: Interval | None
    """None for fewer than two problems, and where a median has too few for 95 %."""
    count: int
    """The problems it is over."""


class Fast(FrozenRecord):
    """fast_p of KernelBench (Ouyang et al. 2025): the part of the samples that is correct, and faster than
    p."""

    p: float
    rate: Rate
    """By the speedup; one whose pace is unresolved counts as 1 at most. Nothing, where no correct sample was
    measured."""
    sure: int
    """Samples whose whole interval lies above p: by its lower end; unresolved ones count as 1 at most."""


class PassAt(FrozenRecord):
    """pass@k: the chance that one of k samples is correct, by the unbiased estimate of Chen et al. 2021."""

    k: int
    mean: Mean
    """Over the problems with at least k judged samples."""


class Scores(FrozenRecord):
    """A group of samples under one setting: of a model, a run, or a template or strategy with a model."""

    source: Source
    model: str
    run_id: int | None = None
    """By run only; so is `run`."""
    run: str | None = None
    template: str | None = None
    """By run and by template; None for files and imported programs."""
    strategy: str | None = None
    """By run and by strategy, likewise."""
    setting: Setting
    attempts: int
    """Finished attempts, all turns. The four that follow are attempts too."""
    answered: int
    extracted: int
    built: int
    right: int
    samples: int
    """Finished samples: the judged ones and the errors."""
    errors: int
    """Samples that ended without a fault of the model's: of the server, of our machine, without a device."""
    correct: Rate
    """Correct samples of the judged ones: those whose status counts against a model."""
    statuses: dict[Status, int]
    fast: tuple[Fast, ...]
    unmeasured: int
    """Correct samples without a measurement: they are not fast."""
    unresolved: int
    pass_at: tuple[PassAt, ...]
    problems: int
    solved: int
    geometric_mean: Mean
    """Over the solved problems that were measured, of the best speedup of each."""
    median: Mean
    geometric_mean_all: Mean
    """Over all problems with a judged sample; one without a measured correct sample counts as 1."""
    median_all: Mean
    tokens: int
    """Prompt and completion tokens of the attempts' paid answers, as far as known."""
    unknown_tokens: int
    tokens_per_correct: Mean
    """Tokens of all attempts over correct samples; its interval is over problems."""
    cost_usd: float
    unknown_cost: int
    cost_per_correct: Mean

    def fast_p(self, p: float) -> Fast:
        """fast_p for one of the values of p that there are. Raises KeyError for another."""
        return {found.p: found for found in self.fast}[p]

    def pass_at_k(self, k: int) -> Mean:
        """pass@k for one of the values of k that there are. Raises KeyError for another."""
        return {found.k: found.mean for found in self.pass_at}[k]


class Kernel(FrozenRecord):
    attempt_id: int
    verification_id: int
    model: str
    run: str | None
    run_id: int
    strategy: str | None
    speedup: float
    interval: Interval
    pace: Pace
    candidate_ms: float
    baseline_ms: float
    baseline: str
    compile_speedup: float | None
    """Against torch.compile; None where it was not measured."""
    compile_interval: Interval | None
    roofline_fraction: float | None
    """1 is the roofline itself; None where none was computed."""
    headroom: float | None
    """How many times faster the roofline is: 1 / fraction."""
    rigor: str | None
    error_class: ErrorClass | None
    """None when nothing says."""
    flags: tuple[Flag, ...]


class Evidence(FrozenRecord):
    """What a measured verification rests on, as far as it is stored."""

    resolution: float
    """The smallest relative difference that is claimed, a fraction."""
    aa_spread: float
    """Of the baseline against itself, a fraction."""
    unresolved_because: str | None
    """Why its pace is unresolved; None where it is not, or where nothing says."""
    roofline: Roofline | None
    sandbox_tier: str | None
    policy: str | None
    """The number of the policy by which it was judged."""
    passed: tuple[str, ...]


class ProblemScores(FrozenRecord):
    source: Source
    problem_id: str
    problem_sha256: str
    problem: str
    suite: str
    level: int | None
    setting: Setting
    samples: int
    errors: int
    correct: Rate
    best: Kernel | None
    """The correct one whose interval begins highest; None when none was measured."""


class KernelScores(FrozenRecord):
    """One correct measured sample: the best of its turns."""

    source: Source
    problem_id: str
    problem_sha256: str
    problem: str = Field(default="", exclude=True)
    setting: Setting
    kernel: Kernel


class Audited(FrozenRecord):
    """Audits of the results that lead a board now."""

    source: Source
    setting: Setting
    ranked: int
    """Problems that have a leading result."""
    audited: int
    """Of these, results that were audited; by the newest audit of each:"""
    held: int
    """Those that were confirmed. The audited ones that neither held nor were refuted are undecided."""
    refuted: int
    last: str
    """When the last of them was audited (UTC, ISO 8601)."""

    @property
    def undecided(self) -> int:
        """Audited results that could not be compared, or only too widely."""
        return self.audited - self.held - self.refuted


class Counts(FrozenRecord):
    """How many attempts and samples the scores leave out, and how many kernels they hold."""

    unfinished: int
    refused: int
    """Correct attempts that do not count as such, by the filters `without` and `error_class`."""
    retracted: int
    """Attempts all of whose verifications were retracted: in no count."""
    stale: int
    """Attempts whose verifications are all of another policy: they do not rank."""
    stale_samples: int
    """Samples that are left out because one of their attempts is stale."""
    kernels: int
    """Correct measured samples, shown or not."""


class Leaderboard(FrozenRecord):
    """The answer of `ScoreQueries.leaderboard`. A view that was not asked for is empty."""

    filters: Filters
    counts: Counts
    models: tuple[Scores, ...] = ()
    """By setting; the best first."""
    runs: tuple[Scores, ...] = ()
    templates: tuple[Scores, ...] = ()
    strategies: tuple[Scores, ...] = ()
    problems: tuple[ProblemScores, ...] = ()
    kernels: tuple[KernelScores, ...] = ()
    """By setting; what ranks first comes first."""
    audits: tuple[Audited, ...] = ()
    """For each board of which something was audited, whatever views were asked for."""
    hints: tuple[str, ...] = ()
    """Where nothing passes the filters: for each of them, which values there are."""


class Details(FrozenRecord):
    """What a table for people says besides of the kernels of a leaderboard."""

    files: dict[int, str] = Field(default_factory=dict)
    """The file of each attempt whose program was verified from a file, where it is known."""
    reasons: dict[int, str | None] = Field(default_factory=dict)
    """Why the pace of each verification that is unresolved is so; None in records of policy 2 and before."""
