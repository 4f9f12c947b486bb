"""`--db`: results on a PostgreSQL server or in another file, and every way in which a server can be away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelproof.db.store import open_store
from kernelproof.errors import KernelproofError, StoreError, UsageError
from kernelproof.verifier.engine.referee_process import referee_environment
from kernelproof.workspace import ServerDatabase, database_place, open_workspace
from tests.cli.test_manners import COMMANDS
from tests.db import samples
from tests.postgres import PostgresServer

COMMAND = (sys.executable, "-c", "from kernelproof.cli.app import main; main()")
SECRET = "s3cret%2Fword"


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, env=environment, check=False
    )


def test_every_command_that_takes_a_workspace_takes_a_database() -> None:
    with_option = {
        option: {words for words, command in COMMANDS.items() for one in command.params if option in one.opts}
        for option in ("--workspace", "--db")
    }
    assert with_option["--workspace"] == with_option["--db"] >= {("leaderboard",)}


@pytest.mark.ci
def test_commands_work_on_a_server_and_show_no_password(postgres: PostgresServer, tmp_path: Path) -> None:
    place = postgres.loopback(postgres.made())
    with open_store(place) as store:
        samples.judge(store, samples.problem(), samples.settings(), speedup=2.0)
    done = run("leaderboard", "--by", "model", "--workspace", str(tmp_path), KERNELPROOF_DB=place.url)
    assert done.returncode == 0 and "replay:a.jsonl" in done.stdout
    checked = run("db", "check", "--workspace", str(tmp_path), "--db", place.url)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    refused = run("db", "vacuum", "--workspace", str(tmp_path), "--db", place.url)
    assert refused.returncode == 2 and "is on a server" in refused.stderr
    for each in (done, checked, refused):
        assert "sesame" not in each.stdout + each.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_driver_is_one_line(tmp_path: Path) -> None:
    code = f"import sys; sys.modules['psycopg'] = None; {COMMAND[2]}"
    address = "postgresql://me@127.0.0.1:1/results"
    words = (sys.executable, "-c", code, "leaderboard", "--workspace", str(tmp_path), "--db", address)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "PostgreSQL needs its driver" in done.stderr


def test_a_server_that_is_away_is_one_line_without_the_password(tmp_path: Path) -> None:
    address = f"postgresql+psycopg://me:{SECRET}@127.0.0.1:1/results"
    done = run("leaderboard", "--workspace", str(tmp_path), "--db", address)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "postgresql+psycopg://me@127.0.0.1:1/results cannot be reached" in done.stderr
    assert "s3cret" not in done.stderr


def test_what_is_wrong_with_a_server_is_said(postgres: PostgresServer) -> None:
    name, other = postgres.empty(), postgres.empty("TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    postgres.sql("CREATE TABLE recipes (name TEXT)", name)
    for place, words in (
        (postgres.loopback("nowhere"), "is not there; make it: createdb"),
        (postgres.loopback(password="wrong"), "refuses the user or the password"),
        (ServerDatabase(postgres.loopback().url + "?sslmode=require"), "SSL settings"),
        (ServerDatabase(postgres.loopback().url + "?sslmode=perhaps"), "SSL settings"),
        (ServerDatabase("postgresql+psycopg://me@nowhere.invalid/x"), "name is not known"),
        (postgres.address(name), "belongs to another program"),
        (postgres.address(other), "has to keep it as UTF8"),
    ):
        with pytest.raises(StoreError, match=words) as caught:
            open_store(place)
        assert "\n" not in str(caught.value) and "wrong" not in str(caught.value)


def test_an_empty_database_is_filled_by_those_who_write(postgres: PostgresServer) -> None:
    place = postgres.address(postgres.empty())
    with pytest.raises(UsageError, match="no attempts are stored"):
        open_store(place, only_read=True)
    open_store(place).close()
    open_store(place, only_read=True).close()


def test_who_may_only_read_reads(postgres: PostgresServer) -> None:
    name = postgres.made()
    with open_store(postgres.address(name)) as store:
        samples.judge(store, samples.problem(), samples.settings(), speedup=2.0)
    postgres.sql("CREATE ROLE reader LOGIN")
    postgres.sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", name)
    as_reader = ServerDatabase(postgres.address(name).url.replace("//tester@", "//reader@"))
    with open_store(as_reader, only_read=True) as store:
        assert store.scores.leaderboard().models[0].correct.part == 1
        with pytest.raises(StoreError, match="does not let this user"):
            store.add_problem(samples.problem(9))


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{SECRET}@h@ost/name",
        f"postgresql://me:{SECRET}@host",
        f"mysql://me:{SECRET}@host/name",
        f"postgresql://me:{SECRET}@host:port/name",
        f"postgresql://me:{SECRET}@127.0.0.1:1/name?no_such_option=1",
    ],
)
def test_an_address_that_is_none_is_refused_and_not_quoted(address: str) -> None:
    with pytest.raises(KernelproofError) as caught:
        open_store(database_place(address))
    assert "s3cret" not in str(caught.value)


def test_a_file_may_be_named_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.sqlite"
    assert open_workspace(tmp_path, database_place(str(file))).database == file
    monkeypatch.setenv("KERNELPROOF_DB", f"postgresql://me:{SECRET}@host/name")
    place = open_workspace(tmp_path).database
    assert str(place) == "postgresql+psycopg://me@host/name" and "s3cret" not in repr(place)
    assert "KERNELPROOF_DB" not in referee_environment(tmp_path)
