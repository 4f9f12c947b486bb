"""The server as a process: how it starts, what it refuses, what it tells, and how it ends."""

from __future__ import annotations

import re
import signal
import socket
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest

from kernelproof.db.store import open_store
from kernelproof.errors import MachineError, install_command
from kernelproof.report.web import require
from tests.cli.program import READ_ONLY, mounted
from tests.db import samples
from tests.report.web.serving.server import command, serving, taken_port, until

pytestmark = pytest.mark.ci


def end_of(workspace: Path, *options: object) -> tuple[int, str]:
    process = command(workspace, *options)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def test_an_attempt_that_is_stored_is_told_and_shown(own_workspace: Path) -> None:
    with serving(own_workspace) as server:
        first = server.state()
        assert "level1/9" not in server.page().text
        with open_store(own_workspace / "db" / "attempts.sqlite", create=False) as store:
            samples.judge(store, samples.problem(9), samples.settings("vendor:new"), speedup=3.0)
        until(lambda: server.state()["results"] != first["results"])
        until(lambda: "vendor:new" in server.page().text)
        assert server.stop() == (0, "")


def test_nothing_new_is_told_of_our_own_questions(own_workspace: Path) -> None:
    """The leaderboard packs what it read: that is nothing new."""
    with serving(own_workspace) as server:
        first = server.state()
        server.page()
        with open_store(own_workspace / "db" / "attempts.sqlite", create=False) as store:
            batch = store.batches.begin("nobody", None, [1], {})
        until(lambda: server.state()["batches"] != first["batches"])
        assert server.state()["results"] == first["results"]
        assert f"batch {batch}" in server.page().text, "progress is never kept"


def test_nothing_is_written_but_the_packed_rows_of_the_leaderboard(own_workspace: Path) -> None:
    database = own_workspace / "db" / "attempts.sqlite"

    def stored() -> list[str]:
        with closing(sqlite3.connect(database)) as connection:
            return [line for line in connection.iterdump() if '"score_' not in line]

    before = stored()
    with serving(own_workspace) as server:
        for path in ("/", "/attempts", "/attempts/1", "/progress", "/?model=good"):
            server.page(path)
        assert server.stop()[0] == 0
    assert stored() == before


def test_a_read_only_directory_is_enough(own_workspace: Path) -> None:
    """Root is stopped by no permission bit: it gets a read-only mount in a mount namespace of its own."""
    with serving(own_workspace, within=mounted(READ_ONLY, own_workspace)) as server:
        assert "vendor:good" in server.page().text
        assert "Attempt #1" in server.page("/attempts/1").text
        assert [path.name for path in (own_workspace / "db").iterdir()] == ["attempts.sqlite"]
        assert server.stop() == (0, "")


def test_a_database_that_vanishes_is_said_and_one_that_returns_is_shown(own_workspace: Path) -> None:
    database = own_workspace / "db" / "attempts.sqlite"
    with serving(own_workspace) as server:
        server.page()
        aside = own_workspace / "aside"
        database.parent.rename(aside)
        for _ in range(2):
            answer, text = server.ask()
            assert answer.status == 503
            assert "The database cannot be read" in text and "Traceback" not in text
        assert server.state()["results"] == "away"
        aside.rename(database.parent)
        assert server.state()["results"] != "away"
        assert "vendor:good" in server.page().text
        assert server.stop() == (0, "")


def test_clients_that_go_leave_nothing(own_workspace: Path) -> None:
    with serving(own_workspace) as server:
        running = psutil.Process(server.process.pid)
        with ExitStack() as clients:
            for _ in range(64):
                client = clients.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                client.sendall(b"GET /state HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert client.recv(12) == b"HTTP/1.1 200"
            assert server.ask()[0].status == 200, "pages are answered all the same"
        until(lambda: len(running.net_connections()) == 1)


def test_many_browsers_at_once_get_the_same_page(own_workspace: Path) -> None:
    with serving(own_workspace) as server, ThreadPoolExecutor(20) as browsers:
        pages = list(browsers.map(lambda _: server.page().within, range(20)))
    assert all(page == pages[0] for page in pages)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_quietly(own_workspace: Path, number: int) -> None:
    with serving(own_workspace) as server:
        assert "Ctrl-C ends it" in server.said
        assert server.stop(number) == (0, "")


def test_a_signal_ends_it_while_an_answer_is_waited_for(own_workspace: Path) -> None:
    path = own_workspace / "db" / "attempts.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as other, ThreadPoolExecutor(1) as reader:
        other.execute("PRAGMA journal_mode=DELETE")  # in which a writer keeps readers out
        with serving(own_workspace) as server:
            server.page()
            other.execute("BEGIN EXCLUSIVE")
            answer = reader.submit(server.ask)
            time.sleep(1)
            assert not answer.done()
            code, errors = server.stop()
            assert code == 0 and "Traceback" not in errors
            assert answer.exception() is not None or answer.result()[0].status >= 500


def test_a_port_in_use_is_said(own_workspace: Path) -> None:
    with taken_port() as taken:
        port = taken.getsockname()[1]
        told = f"kernelproof: port {port} is in use; give another with --port, or 0 for any that is free\n"
        assert end_of(own_workspace, "--port", port) == (3, told)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.7", "127.0.0.1/8"])
def test_a_host_that_is_not_here_is_said(own_workspace: Path, host: str) -> None:
    code, errors = end_of(own_workspace, "--host", host)
    assert code == 2 and errors.count("\n") == 1
    assert f"--host '{host}' is no address of this machine" in errors


def test_without_a_database_there_is_nothing_to_serve(tmp_path: Path) -> None:
    code, errors = end_of(tmp_path)
    assert code == 2 and "no attempts are stored" in errors
    assert not list(tmp_path.iterdir())


def test_other_machines_are_warned_of(own_workspace: Path) -> None:
    with serving(own_workspace, "--host", "0.0.0.0") as server:
        assert server.ask("/", Host=f"127.0.0.1:{server.port}")[0].status == 200
        assert server.ask("/", Host="evil.example")[0].status == 421
        code, errors = server.stop()
    assert code == 0 and "every machine that reaches this address can read all of it" in errors


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MachineError, match="needs uvicorn: " + re.escape(install_command("serve"))):
        require()
