"""Which attempts a score is made of: one frozen record of filters, which compose."""

from __future__ import annotations

from datetime import date
from fnmatch import fnmatchcase
from typing import NamedTuple

from pydantic import Field

from kernelproof.choices import ErrorClass, Flag, Numerics, Purity, Rigor, RunKind
from kernelproof.db import counting
from kernelproof.types import FrozenRecord

ERROR_CLASSES = [found.value for found in ErrorClass]
"""Best first."""
CURRENT, ANY = "current", "any"


class Filters(FrozenRecord):
    """Which attempts count. Each filter that is set must let an attempt pass; None lets everything pass.

    The help of `FilterOptions` in `kernelproof.cli.options` says what each is. Names of suites, models and
    devices are compared without regard to case.
    """

    problem: str | None = None
    """Problem id, name, folder or glob, in any case: `level1/23`, `softmax`, `level1`, `*max`."""
    level: int | None = None
    suite: str | None = None
    model: str | None = None
    template: str | None = None
    strategy: str | None = None
    run: str | None = None
    tag: str | None = None
    kind: RunKind | None = None
    """None: all but `tune`. The best of many trials is the luckiest as well: only its confirmation counts."""
    turns: int | None = Field(default=None, ge=1)
    since: date | None = None
    until: date | None = None
    backend: str | None = None
    size: str | None = None
    device: str | None = None
    numerics: Numerics | None = None
    purity: Purity | None = None
    rigor: Rigor | None = None
    policy: str = CURRENT
    """`current`: verifications under this program's policy; those of another are stale. `any`: all of them
    alike. Else one policy, as `kernelproof.version.POLICY` names it."""
    without: tuple[Flag, ...] = ()
    error_class: ErrorClass | None = None


class RunFacts(NamedTuple):
    id: int
    name: str | None
    kind: str
    model: str
    template: str | None
    strategy: str | None
    tags: frozenset[str]


class ProblemFacts(NamedTuple):
    id: int
    problem_id: str
    name: str
    sha256: str
    suite: str
    level: int | None


class Facts(NamedTuple):
    """Facts that many verifications share. An attempt without a verification has those of its run."""

    status: str | None
    """None: unfinished. `retracted`: all of the attempt's verifications are."""
    verified: bool
    backend: str
    size: str
    device: str | None
    """None where no device was reached."""
    numerics: str
    purity: str
    own_kernel: bool
    rigor: str | None
    policy: str | None
    """None for verifications from before there were policies."""
    screening: bool
    """A search's quick look: its times do not count."""
    error_class: str | None
    flags: str
    """A JSON list."""
    pace: str | None
    baseline: str | None


def run_passes(run: RunFacts, filters: Filters) -> bool:
    return (
        (filters.run is None or filters.run in (run.name, str(run.id)))
        and (run.kind != "tune" if filters.kind is None else run.kind == filters.kind)
        and (filters.model is None or filters.model.casefold() in run.model.casefold())
        and (filters.template is None or filters.template == run.template)
        and (filters.strategy is None or filters.strategy == run.strategy)
        and (filters.tag is None or filters.tag in run.tags)
    )


def problem_passes(problem: ProblemFacts, filters: Filters) -> bool:
    folder = problem.problem_id.rpartition("/")[0]
    ways = [way.lower() for way in (problem.problem_id, problem.name, folder)]
    return (
        (filters.level is None or problem.level == filters.level)
        and (filters.suite is None or problem.suite.casefold() == filters.suite.casefold())
        and (filters.problem is None or any(fnmatchcase(way, filters.problem.lower()) for way in ways))
    )


def setting_passes(facts: Facts, filters: Filters) -> bool:
    """Whether a verification under these rules may count, its device and policy apart."""
    names = ("backend", "size", "numerics", "purity", "rigor")
    return all(getattr(filters, name) in (None, getattr(facts, name)) for name in names)


def policy_passes(facts: Facts, filters: Filters) -> bool:
    """Whether a verification was made under the policy that is asked for. Without a verification: True."""
    if not facts.verified or filters.policy == ANY:
        return True
    return facts.policy == (counting.POLICY if filters.policy == CURRENT else filters.policy)
