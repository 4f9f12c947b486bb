"""A PostgreSQL server that is silent, killed or comes back: it is waited for with one line, and every
transaction is stored once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from sqlalchemy import event, text
from sqlalchemy.orm import Session

from kernelproof.db import backend, connection, postgresql
from kernelproof.db.connection import Database, open_database
from kernelproof.db.models import Run
from kernelproof.db.rows import keep
from kernelproof.db.store import Store, open_store
from kernelproof.errors import StoreError
from kernelproof.workspace import ServerDatabase
from tests.db import samples
from tests.db.soundness import sound
from tests.gateway import Gateway, gateway
from tests.postgres import PostgresServer, server

SAID = "cannot be reached; waiting for it"


@contextmanager
def later(seconds: float, deed: Callable[[], None]) -> Iterator[None]:
    """Does a deed after so many seconds, while the block runs."""
    timer = threading.Timer(seconds, deed)
    timer.start()
    yield
    timer.join()


@pytest.fixture
def way(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    monkeypatch.setattr(postgresql, "ANSWER_S", 1.0)
    monkeypatch.setattr(connection, "WARN_S", 1.0)
    monkeypatch.setattr(backend, "_last_warned", {})
    with gateway(postgres.port) as made:
        yield made


def through(way: Gateway, postgres: PostgresServer, name: str) -> ServerDatabase:
    """The address of a database behind the gateway; connections have two seconds."""
    url = postgres.loopback(name, query="?connect_timeout=2").url
    return ServerDatabase(url.replace(f":{postgres.port}/", f":{way.port}/"))


@contextmanager
def once_said(caplog: pytest.LogCaptureFixture, deed: Callable[[], None]) -> Iterator[None]:
    """Does a deed as soon as there is a warning, or after 30 s, while the block runs."""

    def wait() -> None:
        end = time.monotonic() + 30
        while not lines(caplog) and time.monotonic() < end:
            time.sleep(0.05)
        deed()

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(wait)
        yield
        waiting.result()


def judge(store: Store, sample: int) -> None:
    samples.judge(store, samples.problem(), samples.settings(), speedup=2.0, sample=sample)


def count(store: Store) -> int:
    return store.scores.leaderboard().models[0].samples


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_server_that_never_answers_is_one_line(way: Gateway, postgres: PostgresServer) -> None:
    way.fall_silent()
    with pytest.raises(StoreError, match="cannot be reached; start its server") as caught:
        open_store(through(way, postgres, "postgres"))
    assert "\n" not in str(caught.value)


def test_a_server_that_falls_silent_and_comes_back_loses_nothing(
    way: Gateway, postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    with open_store(through(way, postgres, postgres.made())) as store:
        judge(store, 0)
        way.fall_silent()
        with once_said(caplog, way.come_back):
            judge(store, 1)
            assert count(store) == 2
        assert len(lines(caplog)) == 1 and SAID in lines(caplog)[0]
        sound(store.place)


@pytest.mark.parametrize("when", ["after_begin", "before_commit"])
def test_a_server_that_falls_silent_within_a_transaction_loses_nothing(
    way: Gateway, postgres: PostgresServer, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    """A query may take its time; only a server that takes no connections either is silent."""
    tries: list[int] = []

    def work(session: Session) -> None:
        session.execute(text("SELECT pg_sleep(1.5)"))
        tries.append(1)
        keep(session, f"try {len(tries)}")
        session.flush()
        if len(tries) > 1:
            return
        if when == "after_begin":
            way.fall_silent()
            session.execute(text("SELECT 1"))
        else:
            event.listen(session.get_bind().engine, "commit", lambda _: way.fall_silent(), once=True)

    with closing(open_database(through(way, postgres, postgres.made()), create=False)) as database:
        with once_said(caplog, way.come_back):
            database.write(work)
        wanted = {"after_begin": 2, "before_commit": 1}[when]
        assert len(tries) == wanted and len(lines(caplog)) == 1 and SAID in lines(caplog)[0]
        stored = database.ask(lambda asked: asked.execute(text("SELECT body FROM texts")).scalars().all())
        assert stored == [f"try {wanted}"]


def test_a_server_that_stays_silent_is_waited_for_two_minutes(
    way: Gateway, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert backend.PATIENCE_S == 120
    monkeypatch.setattr(connection, "PATIENCE_S", 4.0)
    with open_store(through(way, postgres, postgres.made())) as store:
        judge(store, 0)
        way.fall_silent()
        began = time.monotonic()
        with pytest.raises(StoreError, match="cannot be reached; start its server"):
            judge(store, 1)
        assert 4 <= time.monotonic() - began < 30
        way.come_back()
        judge(store, 1)
        assert count(store) == 2


@pytest.mark.ci
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_server_that_is_ended_in_the_middle_and_starts_anew_loses_nothing(how: str) -> None:
    with server() as own, open_store(own.loopback(own.made())) as store:

        def again() -> None:
            getattr(own, how)()
            time.sleep(1)
            own.start()

        with later(0.5, again), ThreadPoolExecutor(4) as threads:
            stored = list(threads.map(lambda sample: _stored(store, sample), range(150)))
        # A commit that got no answer may be stored or not; it is never tried again.
        assert sum(stored) <= count(store) <= 150 and sum(stored) >= 150 - 4 * 5
        sound(store.place)


def _stored(store: Store, sample: int) -> bool:
    try:
        judge(store, sample)
    except StoreError as error:
        assert "lost its server in the middle" in str(error)
        return False
    return True


def end_session(session: Session) -> None:
    """Has the server end this very connection."""
    session.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))


@pytest.fixture
def here(postgres: PostgresServer) -> Iterator[Database]:
    with closing(open_database(postgres.address(postgres.made()), create=False)) as opened:
        yield opened


def test_a_transaction_whose_connection_is_lost_runs_again(here: Database) -> None:
    for way in (here.write, here.change, here.read):
        tries: list[int] = []

        def work(session: Session, tries: list[int] = tries) -> int:
            tries.append(1)
            if len(tries) == 1:
                end_session(session)
            return session.query(Run).count()

        assert way(work) == 0 and len(tries) == 2


def test_a_commit_without_an_answer_is_not_tried_again(here: Database, postgres: PostgresServer) -> None:
    tries: list[int] = []

    def work(session: Session) -> None:
        tries.append(1)
        pid = session.execute(text("SELECT pg_backend_pid()")).scalar()

        @event.listens_for(session.get_bind().engine, "commit", once=True)
        def kill(_: object) -> None:
            postgres.sql(f"SELECT pg_terminate_backend({pid}, 5000)")

    with pytest.raises(StoreError, match="lost its server in the middle"):
        here.write(work)
    assert len(tries) == 1


def test_a_server_that_ends_idle_transactions_is_asked_again(postgres: PostgresServer) -> None:
    name = postgres.made()
    postgres.sql(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = '100ms'", name)
    tries: list[int] = []

    def work(session: Session) -> int:
        tries.append(1)
        if len(tries) == 1:
            session.execute(text("SELECT 1"))
            time.sleep(0.5)
        return session.query(Run).count()

    with closing(open_database(postgres.address(name), create=False)) as store:
        assert store.read(work) == 0 and len(tries) == 2
