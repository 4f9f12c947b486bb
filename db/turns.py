"""The rows of the leaderboard: each attempt with the verification that counts, by a few narrow scans.

Raw samples, logs and other wide columns are never read: 10,000 attempts take a fraction of a second.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, func, select, type_coerce

from kernelproof.db.models import Attempt, Environment, Measurement, Problem, Retraction, Run, Verification
from kernelproof.db.views import LeaderboardFilters
from kernelproof.types import ErrorClass, Flag, Status
from kernelproof.types.measurement import resolved

CORRECT = Status.CORRECT.value
ERROR_CLASSES = [found.value for found in ErrorClass]
"""Best first."""
NO_JUDGEMENT = frozenset(status.value for status in Status if not status.counts_against_model)


class RunFacts(NamedTuple):
    """A run's columns that matter here."""

    id: int
    name: str | None
    kind: str
    model: str
    backend: str
    size: str
    numerics: str
    purity: str
    own_kernel: bool
    race: int | None
    """1 where attempts are screened, and the best of each sample is verified once more."""


class ProblemFacts(NamedTuple):
    """A problem's columns that matter here."""

    id: int
    problem_id: str
    name: str
    sha256: str
    level: int | None


class AttemptFacts(NamedTuple):
    """An attempt's columns that matter here."""

    id: int
    run_id: int
    problem: int
    sample: int
    turn: int
    status: str | None


class Verdict(NamedTuple):
    """A verification's columns that matter here; an index holds them all."""

    attempt_id: int
    id: int
    status: str
    backend: str
    size: str
    environment_id: int | None
    numerics: str
    purity: str
    own_kernel: bool
    error_class: str | None
    flags: str
    """A JSON list."""


class Times(NamedTuple):
    """A measurement's columns that matter here; an index holds them all."""

    verification_id: int
    speedup: float
    low: float
    high: float
    candidate_ms: float
    baseline_ms: float
    pace: str
    baseline: str

    @property
    def claimed(self) -> float:
        """The figure that ranks: the interval's lower end, 1 at most where the pace is unresolved."""
        return resolved(self.low, self.pace)

    @property
    def counted(self) -> float:
        """The speedup as rates and means count it. A pace that is unresolved counts with no more than 1."""
        return resolved(self.speedup, self.pace)


class Rules(NamedTuple):
    """The facts that must be equal before two results are compared: the fields of a Setting."""

    backend: str
    size: str
    device: str | None
    numerics: str
    purity: str
    own_kernel: bool


class Turn(NamedTuple):
    """One finished or unfinished attempt under one setting, with the verification that counts there."""

    attempt_id: int
    run_id: int
    problem: int
    sample: int
    turn: int
    status: str | None
    rules: Rules
    on_device: bool
    """Whether it reached a device; else the rules name the one that most attempts of its run ran on."""
    times: Times | None
    error_class: str | None
    flags: str
    correct: bool
    """Correct, and not refused by the filters."""
    claimed: float
    """`Times.claimed`; 0 unless correct and measured: such a turn ranks behind every measured one."""
    speedup: float
    """`Times.counted`, likewise."""


class Turns(NamedTuple):
    """All that passes the filters."""

    runs: dict[int, RunFacts]
    problems: dict[int, ProblemFacts]
    turns: list[Turn]
    retracted: int
    """Attempts all of whose verifications were retracted: they are no turns."""


def read_turns(connection: Connection, filters: LeaderboardFilters) -> Turns:
    """The attempts that pass the filters, with their runs and problems by row number."""
    all_runs = (RunFacts(*row) for row in connection.execute(_RUNS).all())
    all_problems = (ProblemFacts(*row) for row in connection.execute(_PROBLEMS).all())
    runs = {run.id: run for run in all_runs if _run_passes(run, filters)}
    problems = {problem.id: problem for problem in all_problems if _problem_passes(problem, filters)}
    retracted, everything = _turns(connection, runs, filters)
    turns = [t for t in everything if t.problem in problems and _setting_passes(t, filters)]
    return Turns(runs, problems, turns, sum(problem in problems for problem in retracted))


_RUNS = select(
    *(Run.id, Run.name, Run.kind, Run.model, Run.backend, Run.size),
    *(Run.numerics, Run.purity, Run.own_kernel, func.json_extract(Run.settings, "$.race")),
)
_PROBLEMS = select(Problem.id, Problem.problem_id, Problem.name, Problem.sha256, Problem.level)
_DEVICES = select(Environment.id, Environment.device_name)
_ATTEMPTS = select(Attempt.id, Attempt.run_id, Attempt.problem, Attempt.sample, Attempt.turn, Attempt.status)
_VERDICTS = (
    select(
        Verification.attempt_id,
        Verification.id,
        Verification.status,
        Verification.backend,
        Verification.size,
        Verification.environment_id,
        Verification.numerics,
        Verification.purity,
        Verification.own_kernel,
        Verification.error_class,
        type_coerce(Verification.flags, Text),  # parsed once for each distinct list
    )
    .where(Verification.kind != "reproduce")
    .order_by(Verification.attempt_id)
)
_SCREENINGS = (
    select(Verification.id)
    .join(Attempt, Attempt.id == Verification.attempt_id)
    .where(func.json_extract(Verification.settings, "$.bar").is_not(None))
)
_RETRACTIONS = select(Retraction.verification_id, Retraction.counts).order_by(Retraction.id)
_TIMES = select(
    Measurement.verification_id,
    Measurement.speedup,
    Measurement.speedup_low,
    Measurement.speedup_high,
    Measurement.candidate_ms,
    Measurement.baseline_ms,
    Measurement.pace,
    Measurement.baseline,
)


def _run_passes(run: RunFacts, filters: LeaderboardFilters) -> bool:
    return (
        (filters.run is None or run.name == filters.run)
        # The best of many trials is the luckiest as well: only its confirmation counts, a run of kind verify.
        and (run.kind != "tune" if filters.kind is None else run.kind == filters.kind)
        and (filters.model is None or filters.model.casefold() in run.model.casefold())
    )


def _problem_passes(problem: ProblemFacts, filters: LeaderboardFilters) -> bool:
    folder = problem.problem_id.rpartition("/")[0]
    ways = [way.lower() for way in (problem.problem_id, problem.name, folder)]
    return (filters.level is None or problem.level == filters.level) and (
        filters.problem is None or any(fnmatchcase(way, filters.problem.lower()) for way in ways)
    )


def _setting_passes(turn: Turn, filters: LeaderboardFilters) -> bool:
    rules = turn.rules
    return (
        (filters.backend is None or rules.backend == filters.backend)
        and (filters.size is None or rules.size == filters.size)
        and (filters.numerics is None or rules.numerics == filters.numerics)
        and (filters.purity is None or rules.purity == filters.purity)
        and (filters.device is None or filters.device.casefold() in (rules.device or "").casefold())
    )


def _accepted(verdict: Verdict, filters: LeaderboardFilters) -> bool:
    """Whether a correct verification counts as one."""
    if not set(filters.without).isdisjoint(flags_of(verdict.flags)):
        return False
    wanted, found = filters.error_class, verdict.error_class
    return wanted is None or found is None or ERROR_CLASSES.index(found) <= ERROR_CLASSES.index(wanted)


@cache
def flags_of(text: str) -> tuple[Flag, ...]:
    """The flags in a JSON list."""
    return tuple(map(Flag, json.loads(text)))


def _turns(
    connection: Connection, runs: dict[int, RunFacts], filters: LeaderboardFilters
) -> tuple[list[int], list[Turn]]:
    """Problems of the attempts that were retracted wholly, and all other attempts of the runs."""
    devices: dict[int | None, str] = {row[0]: row[1] for row in connection.execute(_DEVICES)}
    screenings = _screenings(connection, runs)
    retracted, chosen = _verdicts(connection, devices, screenings)
    # The best of many is the luckiest as well: a screening's times do not count.
    times = (Times(*row) for row in connection.execute(_TIMES).all())
    measured = {each.verification_id: each for each in times if each.verification_id not in screenings}
    all_attempts = (AttemptFacts(*row) for row in connection.execute(_ATTEMPTS).all())
    attempts = [attempt for attempt in all_attempts if attempt.run_id in runs]
    usual = _usual_devices(attempts, chosen, devices)
    gone, turns = [], []
    for a in attempts:
        verdicts = chosen.get(a.id)
        if verdicts is None and a.id in retracted:
            gone.append(a.problem)
            continue
        for verdict in verdicts or (None,):
            device = devices.get(verdict.environment_id) if verdict else None
            rules = _rules(verdict or runs[a.run_id], device or usual.get(a.run_id))
            turns.append(_turn(a, verdict, rules, device is not None, measured, filters))
    return gone, turns


def _turn(
    a: AttemptFacts,
    verdict: Verdict | None,
    rules: Rules,
    on_device: bool,
    measured: dict[int, Times],
    filters: LeaderboardFilters,
) -> Turn:
    status = verdict.status if verdict else a.status
    times = measured.get(verdict.id) if verdict else None
    correct = status == CORRECT and (verdict is None or _accepted(verdict, filters))
    return Turn(
        attempt_id=a.id,
        run_id=a.run_id,
        problem=a.problem,
        sample=a.sample,
        turn=a.turn,
        status=status,
        rules=rules,
        on_device=on_device,
        times=times,
        error_class=verdict.error_class if verdict else None,
        flags=verdict.flags if verdict else "[]",
        correct=correct,
        claimed=times.claimed if correct and times else 0.0,
        speedup=times.counted if correct and times else 0.0,
    )


def _rules(facts: Verdict | RunFacts, device: str | None) -> Rules:
    return Rules(facts.backend, facts.size, device, facts.numerics, facts.purity, facts.own_kernel)


def _screenings(connection: Connection, runs: dict[int, RunFacts]) -> set[int]:
    """The screenings of runs that race."""
    races = [run.id for run in runs.values() if run.race]
    return set(connection.scalars(_SCREENINGS.where(Attempt.run_id.in_(races)))) if races else set()


def _verdicts(
    connection: Connection, devices: dict[int | None, str], screenings: set[int]
) -> tuple[set[int], dict[int, list[Verdict]]]:
    """Attempts with a retracted verification, and for each attempt the verifications that count.

    For each setting and device that is the newest one not retracted; one that judged nothing (our machine
    failed, or had no device) gives way to any that did, and a screening to what is none.
    """

    def weight(verdict: Verdict) -> tuple[bool, bool, int]:
        return verdict.status not in NO_JUDGEMENT, verdict.id not in screenings, verdict.id

    gone = _retracted(connection)
    retracted: set[int] = set()
    chosen: defaultdict[int, dict[Rules, Verdict]] = defaultdict(dict)
    for row in connection.execute(_VERDICTS).all():
        verdict = Verdict(*row)
        if verdict.id in gone:
            retracted.add(verdict.attempt_id)
            continue
        rules = _rules(verdict, devices.get(verdict.environment_id))
        rival = chosen[verdict.attempt_id].get(rules)
        if rival is None or weight(verdict) > weight(rival):
            chosen[verdict.attempt_id][rules] = verdict
    return retracted, {attempt: _one_a_device(found, weight) for attempt, found in chosen.items()}


def _one_a_device(found: dict[Rules, Verdict], weight: Callable[[Verdict], Any]) -> list[Verdict]:
    """Drops what another verdict under the same rules outweighs, where one of the two reached no device."""
    if len(found) == 1:
        return list(found.values())
    kept = []
    for rules, verdict in found.items():
        rivals = [
            other
            for r, other in found.items()
            if r != rules and r._replace(device=None) == rules._replace(device=None)
            if r.device is None or rules.device is None
        ]
        if all(weight(verdict) > weight(rival) for rival in rivals):
            kept.append(verdict)
    return kept


def _retracted(connection: Connection) -> set[int]:
    """Verifications of which the newest word is that they do not count."""
    counts: dict[int, bool] = {}
    for verification, again in connection.execute(_RETRACTIONS):
        counts[verification] = again
    return {verification for verification, again in counts.items() if not again}


def _usual_devices(
    attempts: Iterable[AttemptFacts], chosen: dict[int, list[Verdict]], devices: dict[int | None, str]
) -> dict[int, str]:
    """Run to the device that most of its attempts ran on: where those count that reached no device."""
    seen: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for a in attempts:
        for verdict in chosen.get(a.id, ()):
            if verdict.environment_id is not None:
                seen[a.run_id][devices[verdict.environment_id]] += 1
    return {run: max(sorted(counts), key=lambda device: counts[device]) for run, counts in seen.items()}
