"""The leaderboard's line about audits: of the results that lead now, by the newest audit of each."""

from __future__ import annotations

from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store
from kernelproof.report.leaderboard import audit_of, place_of
from kernelproof.types import ReproductionFinding as Finding
from tests.db import samples
from tests.db.conftest import BOTH

STORES = BOTH
P = [samples.problem(number) for number in range(1, 5)]
RUN = samples.settings()


def ranked(store: Store, problem: int, speedup: float = 2.0, **facts: object) -> tuple[int, int]:
    return samples.judge(store, P[problem], RUN, speedup=speedup, **facts)  # type: ignore[arg-type]


def audited(store: Store, judged: tuple[int, int], finding: Finding) -> None:
    attempt, verification = judged
    again = samples.verification(P[0], speedup=2.0)
    made = store.record_verification(attempt, again, "reproduce")
    store.audits.record(
        "2026-01-01T00:00:00.000+00:00", 5, verification, samples.reproduction(attempt, finding, made)
    )


def test_nothing_is_said_where_nothing_was_audited(store: Store) -> None:
    ranked(store, 0)
    board = store.scores.leaderboard()
    assert board.audits == () and audit_of(board, place_of(board.problems[0])) == ""


def test_the_newest_audit_of_each_leader_counts(store: Store) -> None:
    first, second, third, _ = (ranked(store, number) for number in range(4))
    audited(store, first, Finding.SLOWER)
    audited(store, first, Finding.SAME)
    audited(store, second, Finding.NOW_WRONG)
    audited(store, third, Finding.AMBIGUOUS)
    board = store.scores.leaderboard(views=("model", "problem"))
    (found,) = board.audits
    assert (found.ranked, found.audited, found.held, found.refuted, found.undecided) == (4, 3, 1, 1, 1)
    line = audit_of(board, place_of(board.problems[0]))
    counts = "1 of 4 ranked results held, 1 did not hold, 1 undecided, 1 not audited"
    assert line == f"audited on {found.last[:10]}: {counts}"


def test_what_takes_the_lead_is_not_audited(store: Store) -> None:
    audited(store, ranked(store, 0), Finding.SAME)
    other = ranked(store, 1)
    audited(store, other, Finding.SAME)
    ranked(store, 0, speedup=3.0, sample=1)
    (found,) = store.scores.leaderboard().audits
    assert (found.ranked, found.audited, found.held) == (2, 1, 1)


def test_boards_and_filters_have_audits_of_their_own(store: Store) -> None:
    audited(store, ranked(store, 0, device="A"), Finding.SAME)
    ranked(store, 0, device="B", sample=1)
    board = store.scores.leaderboard(views=("model",))
    assert [(found.setting.device, found.audited) for found in board.audits] == [("A", 1)]
    assert board.problems == ()
    assert store.scores.leaderboard(Filters(device="B")).audits == ()


def test_every_finding_is_counted_once(store: Store) -> None:
    judged = ranked(store, 0)
    for finding in Finding:
        audited(store, judged, finding)
        (found,) = store.scores.leaderboard().audits
        assert found.held + found.refuted + found.undecided == found.audited == 1
