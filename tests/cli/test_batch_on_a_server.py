"""A batch whose results are on a PostgreSQL server, from the questions to the reproduction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_database_option import run
from tests.postgres import PostgresServer


@pytest.mark.ci
@pytest.mark.timeout(900)
def test_a_batch_works_from_start_to_end(postgres: PostgresServer, tmp_path: Path) -> None:
    address = postgres.loopback(postgres.empty()).url

    def command(*words: str) -> str:
        done = run(*words, "--workspace", str(tmp_path), "--db", address)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    rules = ("--backend", "cpp", "--size", "small", "--no-measure")
    command("generate", "level1/2", "level1/7", "--model", "replay:demo", *rules)
    (model,) = json.loads(command("leaderboard", "--json"))["models"]
    assert (model["model"], model["correct"]["whole"]) == ("replay:demo", 2)
    command("report", "-o", str(tmp_path / "report.html"))
    assert (tmp_path / "report.html").read_text().lower().startswith("<!doctype html>")
    command("export", "jsonl", "-o", str(tmp_path / "lines"))
    assert [json.loads(line)["id"] for line in (tmp_path / "lines").read_text().splitlines()] == [1, 2]
    assert "same" in command("reproduce", "1")
    assert "nothing wrong" in command("db", "check")
    assert not (tmp_path / "db").exists()
