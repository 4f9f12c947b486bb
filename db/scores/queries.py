"""The query layer: terminal, pages and exports take all scores from here, as `store.scores`.

with open_store(path, only_read=True) as store:
    board = store.scores.leaderboard(Filters(level=2, model="gpt"), views=("model", "kernel"), top=10)
    for row in board.models:
        print(row.model, row.setting.device, row.correct.share, row.fast_p(1.0).rate.interval)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError
from sqlalchemy import Connection, select
from sqlalchemy.orm import Session

from kernelproof.db.connection import HasDatabase, open_database
from kernelproof.db.models import Check, Measurement, Response, Verification
from kernelproof.db.rows import Library, batched
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import Details, Evidence
from kernelproof.errors import StoreError
from kernelproof.types import CheckOutcome, Pace
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from kernelproof.db.scores.comparing import Comparison, Kind
    from kernelproof.db.scores.groups import Curves
    from kernelproof.db.scores.leaderboard_query import Chosen
    from kernelproof.db.scores.records import Leaderboard, ViewName
    from kernelproof.db.scores.reported_results import Claims


T = TypeVar("T")


@contextmanager
def open_scores(place: DatabasePlace) -> Iterator[ScoreQueries]:
    """The scores of the database at `place`, to read. Raises as `open_store`, and starts sooner."""
    database = open_database(place, create=False, only_read=True)
    try:
        yield ScoreQueries(database)
    finally:
        database.close()


class ScoreQueries(HasDatabase):
    """Questions about the scores of a database. Each answer is of one state of it."""

    def leaderboard(
        self,
        filters: Filters | None = None,
        views: Collection[ViewName] = ("model", "problem"),
        top: int | None = None,
    ) -> Leaderboard:
        """Scores, as docs/guide/leaderboard.md defines them: the views that are asked for.

        `top`: most kernels of each setting in the view `kernel`; None for all.
        """
        from kernelproof.db.scores.leaderboard_query import leaderboard

        return self._asked(lambda c: leaderboard(c, filters or Filters(), views, top))

    def curves(self, filters: Filters | None = None) -> tuple[Curves, ...]:
        """Each model's speedups, and what it reaches with fewer turns or tokens, for each setting."""
        from kernelproof.db.scores.groups import curves
        from kernelproof.db.scores.score_table import read_book

        def ask(connection: Connection) -> tuple[Curves, ...]:
            chosen = filters or Filters()
            return curves(read_book(connection, chosen), chosen)

        return self._asked(ask)

    def evidence(self, verifications: Collection[int]) -> dict[int, Evidence]:
        """What those of these verifications that were measured rest on.

        Raises StoreError for a record that makes no sense.
        """
        return self._database.read(lambda session: _evidence(session, verifications))

    def details(self, board: Leaderboard) -> Details:
        """What tables for people say besides of the kernels of a leaderboard."""
        kernels = [(row.source, row.kernel) for row in board.kernels]
        kernels += [(row.source, row.best) for row in board.problems if row.best]
        given = [kernel.attempt_id for source, kernel in kernels if source == "file"]
        unresolved = [kernel.verification_id for _, kernel in kernels if kernel.pace is Pace.UNRESOLVED]
        return self._database.read(
            lambda session: Details(
                files=_file_names(session, given), reasons=_unresolved_because(session, unresolved)
            )
        )

    def comparison(
        self, a: str, b: str, kind: Kind | None = None, filters: Filters | None = None
    ) -> tuple[Comparison, ...]:
        """Two models, runs, templates or strategies, paired by problem: one comparison for each setting.

        Raises UsageError where A and B name nothing, or things of different kinds.
        """
        from kernelproof.db.scores.leaderboard_query import comparison

        return self._asked(lambda c: comparison(c, filters or Filters(), a, b, kind))

    def chosen(self, filters: Filters | None = None) -> Chosen:
        """The finished attempts that pass the filters, each turn, with the verification that counts."""
        from kernelproof.db.scores.leaderboard_query import chosen

        return self._asked(lambda c: chosen(c, filters or Filters()))

    def claims(self, filters: Filters | None = None) -> Claims:
        """Claims about imported programs, beside the verdicts of this database."""
        from kernelproof.db.scores.reported_results import claims

        return self._asked(lambda c: claims(c, filters or Filters()))

    def stale(self, filters: Filters | None = None) -> dict[int, list[int]]:
        """Run to its attempts whose verifications are all of another policy than the filters ask for.

        Of the other filters only those on runs and problems are asked.
        """
        from kernelproof.db.scores.leaderboard_query import stale_attempts

        return self._asked(lambda c: stale_attempts(c, filters or Filters()))

    def _asked(self, ask: Callable[[Connection], T]) -> T:
        """The answer, within one read transaction. Changed rows are packed before.

        Where the file cannot be written now, nothing is packed, and the question merges what changed itself.
        """
        from kernelproof.db.scores.score_table import any_changed, pack_some

        database = self._database
        if database.ask(any_changed):
            while database.write_if_free(pack_some):
                pass
        return database.ask(ask)


def _file_names(session: Session, attempts: Collection[int]) -> dict[int, str]:
    """The file of each attempt whose program was verified from a file, where it is known."""
    texts, found = Library(session), {}
    for some in batched(list(attempts)):
        asked = select(Response.attempt_id, Response.raw_sha256).where(Response.attempt_id.in_(some))
        rows = session.execute(asked).all()
        texts.read_ahead(key for _, key in rows)
        for attempt, key in rows:
            raw = texts.get_json(key, "response", {})
            if isinstance(raw, dict) and isinstance(raw.get("file"), str):
                found[attempt] = raw["file"]
    return found


def _unresolved_because(session: Session, verifications: Collection[int]) -> dict[int, str | None]:
    found: dict[int, str | None] = {}
    for some in batched(list(verifications)):
        columns = select(Measurement.verification_id, Measurement.unresolved_because)
        for verification, because in session.execute(columns.where(Measurement.verification_id.in_(some))):
            found[verification] = because
    return found


def _evidence(session: Session, verifications: Collection[int]) -> dict[int, Evidence]:
    found = {}
    m, v, names = Measurement, Verification, list(Evidence.model_fields)
    for some in batched(sorted(set(verifications))):
        passed = defaultdict(list)
        checks = select(Check.verification_id, Check.name).where(
            Check.verification_id.in_(some), Check.outcome == CheckOutcome.PASS.value
        )
        for number, name in session.execute(checks.order_by(Check.verification_id, Check.position)):
            passed[number].append(name)
        rows = session.execute(
            select(
                *(v.id, m.resolution, m.aa_spread, m.unresolved_because, m.roofline, v.sandbox_tier, v.policy)
            )
            .join(m, m.verification_id == v.id)
            .where(v.id.in_(some))
        )
        for number, *facts in rows:
            try:
                record = dict(zip(names, (*facts, passed[number]), strict=True))
                found[number] = Evidence.model_validate(record)
            except ValidationError as error:
                raise StoreError(f"the record of verification {number} cannot be read: edited") from error
    return found
