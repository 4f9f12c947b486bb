"""An audit: the results that lead the leaderboard, verified once more."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from kernelproof.backends import BACKENDS
from kernelproof.db.columns import utc_now
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import Kernel, Source, ViewName
from kernelproof.db.store import Store
from kernelproof.errors import UsageError
from kernelproof.runs.reproduction import reproduce
from kernelproof.types import Reproduction, Setting, VerifySettings
from kernelproof.verifier.devices.discovery import device_for
from kernelproof.verifier.engine.engine import Engine

_BY_PROBLEM: tuple[ViewName, ...] = ("problem",)


class Leader(NamedTuple):
    """The result that leads a problem of a board."""

    source: Source
    setting: Setting
    problem_id: str
    best: Kernel


def leaders(store: Store, filters: Filters) -> list[Leader]:
    """The best of each problem of each board, in the leaderboard's order.

    Raises UsageError where nothing that passes the filters ranks.
    """
    board = store.scores.leaderboard(filters, _BY_PROBLEM)
    found = [
        Leader(row.source, row.setting, row.problem_id, row.best)
        for row in board.problems
        if row.best is not None
    ]
    if not found:
        raise UsageError("\n  ".join(("no measured result that passes these filters ranks", *board.hints)))
    return found


@dataclass(frozen=True)
class Outcome:
    """The findings of an audit."""

    results: list[tuple[Leader, Reproduction]] = field(default_factory=list)

    @property
    def held(self) -> int:
        """Results that were confirmed."""
        return sum(one.finding.confirms for _, one in self.results)

    @property
    def refuted(self) -> int:
        """Results that do not hold."""
        return sum(one.finding.refutes for _, one in self.results)

    @property
    def undecided(self) -> int:
        """Results of which nothing can be said."""
        return len(self.results) - self.held - self.refuted


def by_place(leaders: Iterable[Leader], engine: Engine) -> tuple[list[Leader], list[Leader]]:
    """The results of devices like one of this machine's, and those of others: not comparable here."""

    @cache
    def device(backend: str) -> str | None:
        if backend not in BACKENDS or not BACKENDS.find(backend).is_installed or device_for(backend) is None:
            return None
        return engine.environment(VerifySettings(backend=backend)).device_name

    here: list[Leader] = []
    elsewhere: list[Leader] = []
    for leader in leaders:
        is_here = leader.setting.device == device(leader.setting.backend)
        (here if is_here else elsewhere).append(leader)
    return here, elsewhere


def drawn(leaders: Sequence[Leader], count: int, seed: int) -> list[Leader]:
    """So many of the results, or all if there are fewer; the same seed draws the same ones of a board."""
    places = random.Random(seed).sample(range(len(leaders)), min(count, len(leaders)))
    return [leaders[place] for place in sorted(places)]


def audit(
    store: Store,
    chosen: Iterable[Leader],
    engine: Engine,
    *,
    seed: int | None = None,
    on_done: Callable[[Leader, Reproduction], None] = lambda _leader, _reproduction: None,
) -> Outcome:
    """Verifies each result again and keeps the finding at once: an interruption loses none.

    `seed`: by which they were drawn. Raises what `Engine.verify` raises.
    """
    began, outcome = utc_now(), Outcome()
    for leader in chosen:
        best = leader.best
        reproduction = reproduce(store, best.attempt_id, engine, verification_id=best.verification_id)
        store.audits.record(began, seed, best.verification_id, reproduction)
        outcome.results.append((leader, reproduction))
        on_done(leader, reproduction)
    return outcome
