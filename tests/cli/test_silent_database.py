"""`generate` while its PostgreSQL server falls silent: every answer that was paid for is stored."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kernelproof.db.store import open_store
from tests.cli.program import Program
from tests.faultserver import start
from tests.gateway import gateway
from tests.postgres import PostgresServer

SAMPLES = 40


@pytest.mark.ci
def test_answers_that_come_while_the_database_is_silent_are_stored(
    program: Program, suite: Path, postgres: PostgresServer
) -> None:
    place = postgres.loopback(postgres.made(), query="?connect_timeout=2")
    with gateway(postgres.port) as way, start(delay_s=0.5) as models:
        silent = place.url.replace(f":{postgres.port}/", f":{way.port}/")
        program.extra = {"OPENAI_API_KEY": "none", "KERNELPROOF_DB": silent}
        process = program.start(
            *("generate", "level1/1", "--suite", suite, "--backend", "cpp", "--trials", 1, "--no-measure"),
            *("--model", "openai:any", "--base-url", models.url),
            *("--samples", SAMPLES, "--concurrency", 8),
        )
        while sum(models.counts()["answered"].values()) < 8:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        way.fall_silent()
        assert process.stderr is not None
        assert "cannot be reached; waiting for it, 120 s at most" in process.stderr.readline()
        way.come_back()
        _, more = process.communicate(timeout=120)
        assert (process.returncode, more) == (0, "")
        assert models.counts()["requests"] == SAMPLES
    with open_store(place, create=False) as store:
        numbers = sorted(state.id for state in store.attempts_of(1).values())
        assert len(numbers) == SAMPLES  # a transaction that was begun again leaves a gap
        assert all(each.responses and each.status for each in store.load_attempts(numbers))
