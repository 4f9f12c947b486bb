"""Random histories of attempts, and the one rule of docs/rationale/counting.md as plain loops over them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import strategies as st

from kernelproof.choices import Rigor
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt, StoredVerification, VerificationKind
from kernelproof.types import Setting, Status, Verification, VerifySettings
from kernelproof.version import POLICY, policy_of
from tests.db import samples

OLD, NOW, NEXT = (str(int(POLICY) + step) for step in (-1, 0, 1))
"""Policies: an earlier one, this program's, and a later program's."""
RULES = (
    samples.CPP_SMALL,
    VerifySettings(backend="cpp", size="small", rigor=Rigor.PUBLISH),
    VerifySettings(backend="cpp", size="small", bar=1.0, rigor=Rigor.QUICK),
    VerifySettings(backend="cpp", size="small", numerics="tf32"),
)
RUNS = (samples.settings(), samples.settings("openai:other", RULES[3]))
IMPORT = samples.settings("published").model_copy(update={"kind": "import", "template": None})
REACHED = (Status.CORRECT, Status.CORRECT, Status.WRONG_OUTPUT, Status.INFRASTRUCTURE_ERROR)
UNREACHED = (Status.BUILD_ERROR, Status.BUILT_NOT_RUN, Status.INFRASTRUCTURE_ERROR)
ENDS = (Status.NO_CODE, Status.REFUSED, Status.PLANS, Status.PROVIDER_ERROR, None)


@dataclass(frozen=True)
class Judgement:
    """A verification to store."""

    kind: VerificationKind
    verification: Verification
    retracted: tuple[bool, ...]
    """What is said of it afterwards, one after the other."""


@dataclass(frozen=True)
class Turn:
    """An attempt to store. `run`: its place in RUNS; None for an imported program."""

    run: int | None
    problem: int
    sample: int
    turn: int
    ended: Status | None
    judgements: tuple[Judgement, ...]


@st.composite
def judgements(draw: st.DrawFn) -> Judgement:
    device = draw(st.sampled_from(("A", "A", "B", None)))
    status = draw(st.sampled_from(UNREACHED if device is None else REACHED))
    judged = samples.verification(
        samples.problem(1),
        status,
        draw(st.sampled_from((0.5, 1.5, 2.0, None))) if status is Status.CORRECT else None,
        device,
        draw(st.sampled_from(RULES)),
    )
    policy = draw(st.sampled_from((NOW, NOW, NOW, OLD, NEXT)))
    return Judgement(
        draw(st.sampled_from(("first", "again", "again", "reproduce"))),
        judged.model_copy(update={"verifier": f"0.2.0 policy:{policy}"}),
        tuple(draw(st.sampled_from(((), (), (), (True,), (True, False))))),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Turn]:
    """Samples of some turns, of two runs under different rules and of an import, in any order."""
    turns = []
    places = st.tuples(st.sampled_from((0, 0, 0, 1, None)), st.integers(1, 2), st.integers(0, 1))
    for run, problem, sample in draw(st.lists(places, min_size=1, max_size=5, unique=True)):
        for turn in range(1, 2 if run is None else 1 + draw(st.integers(1, 3))):
            judged = tuple(draw(st.lists(judgements(), max_size=4)))
            ended = judged[-1].verification.status if judged else draw(st.sampled_from(ENDS))
            turns.append(Turn(run, problem, sample, turn, ended, judged))
    return turns


def store_history(store: Store, turns: Iterable[Turn]) -> list[int]:
    """Stores the attempts with their verifications and retractions; their numbers."""
    return [_store(store, turn) for turn in turns]


def _store(store: Store, turn: Turn) -> int:
    problem = samples.problem(turn.problem)
    if turn.run is None:
        program = samples.imported(f"{turn.problem} {turn.sample}.py", f"# {turn}", correct=True, speedup=2.0)
        number = store.add_imported(IMPORT, [program._replace(problem=problem)])[1][0].attempt_id
    else:
        number = samples.begin(store, problem, RUNS[turn.run], turn.sample, turn.turn)
        store.record_response(number, samples.response())
    for judgement in turn.judgements:
        verification = store.record_verification(number, judgement.verification, judgement.kind)
        for gone in judgement.retracted:
            store.retract(verification, "why not", counts=not gone)
    if turn.ended is not None:
        store.finish_attempt(number, turn.ended)
    return number


class Row(NamedTuple):
    """An attempt where it counts: its verification, None for none, and whether it decides its sample."""

    attempt: int
    verification: int | None
    setting: Setting
    status: Status | None
    decides: bool


def eligible(attempt: StoredAttempt) -> list[StoredVerification]:
    return [v for v in attempt.verifications if v.kind != "reproduce" and v.retracted is None]


def first(verifications: Iterable[StoredVerification], policy: str) -> StoredVerification | None:
    """The one that counts: current before stale, judging before others, no screening, the newest."""
    ordered = sorted(verifications, key=lambda v: -v.id)
    for better in (
        lambda v: v.verification.settings.bar is None,
        lambda v: v.verification.status.counts_against_model,
        lambda v: policy_of(v.verification.verifier) == policy,
    ):
        ordered = [v for v in ordered if better(v)] + [v for v in ordered if not better(v)]
    return ordered[0] if ordered else None


def rules(settings: VerifySettings) -> tuple[object, ...]:
    return (settings.backend, settings.size, settings.numerics, settings.purity, settings.own_kernel)


def device(verification: Verification) -> str | None:
    return verification.environment.device_name if verification.environment else None


def counting(attempts: Sequence[StoredAttempt], policy: str) -> set[Row]:
    """Every attempt where it counts under a policy."""
    now = {a.id: [v for v in eligible(a) if policy_of(v.verification.verifier) == policy] for a in attempts}
    by_run: defaultdict[int, Counter[str]] = defaultdict(Counter)
    by_sample: defaultdict[tuple[object, ...], list[StoredAttempt]] = defaultdict(list)
    for a in attempts:
        by_run[a.run_id].update({d for v in now[a.id] if (d := device(v.verification))})
        by_sample[a.run_id, a.key.problem_id, a.key.sample].append(a)
    rows: set[Row] = set()
    for turns in by_sample.values():
        if any(eligible(a) and not now[a.id] for a in turns):
            continue  # stale
        of_run = by_run[turns[0].run_id]
        usual = min(of_run, key=lambda d: (-of_run[d], d), default=None)
        rows |= _of_sample(turns, now, usual, policy)
    return rows


def _of_sample(
    turns: list[StoredAttempt], now: dict[int, list[StoredVerification]], usual: str | None, policy: str
) -> set[Row]:
    reached: defaultdict[tuple[object, ...], set[str | None]] = defaultdict(set)
    for v in (v for a in turns for v in now[a.id]):
        if device(v.verification):
            reached[rules(v.verification.settings)].add(device(v.verification))
    placed: defaultdict[
        tuple[tuple[object, ...], str | None], list[tuple[StoredAttempt, StoredVerification | None]]
    ]
    placed = defaultdict(list)
    for a in sorted(turns, key=lambda a: a.key.turn):
        if not any(v.kind != "reproduce" for v in a.verifications):
            for where in reached[rules(a.run.verify)] or {usual}:
                placed[rules(a.run.verify), where].append((a, None))
        here: defaultdict[tuple[tuple[object, ...], str | None], list[StoredVerification]] = defaultdict(list)
        for v in now[a.id]:
            under, own = rules(v.verification.settings), device(v.verification)
            everywhere: set[str | None] = {own} if own else reached[under] or {usual}
            for each in everywhere:
                here[under, each].append(v)
        for key, some in here.items():
            placed[key].append((a, first(some, policy)))
    rows = set()
    for (of, where), several in placed.items():
        setting = Setting.model_validate(
            dict(zip(("backend", "size", "numerics", "purity", "own_kernel"), of, strict=True))
            | {"device": where}
        )
        best = max(several, key=lambda each: _rank(*each), default=None)
        for a, counts in several:
            decides = best == (a, counts) and _rank(a, counts)[0] > -2 and _status(a, counts) is not None
            rows.add(Row(a.id, counts.id if counts else None, setting, _status(a, counts), decides))
    return rows


def _status(a: StoredAttempt, v: StoredVerification | None) -> Status | None:
    return v.verification.status if v else a.status


def _rank(a: StoredAttempt, v: StoredVerification | None) -> tuple[float, int]:
    if _status(a, v) is Status.PLANS:
        return -2.0, a.key.turn
    if _status(a, v) is not Status.CORRECT:
        return -1.0, a.key.turn
    m = v.verification.measurement if v and v.verification.settings.bar is None else None
    return (m.speedup_interval.low if m else 0.0), a.key.turn
