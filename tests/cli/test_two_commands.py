"""Two equal commands against a server that fails, both killed again and again: nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from kernelproof.types import Status
from tests.cli.program import Program, kill
from tests.faultserver import FaultServer, start

TOKENS = 150
"""Of each of the server's answers."""


def stored(program: Program) -> tuple[Counter[str], int]:
    """Question keys with a stored answer, how often each, and the tokens of all answers."""
    path = program.workspace / "db" / "attempts.sqlite"
    if not path.exists():
        return Counter(), 0
    with closing(sqlite3.connect(path, timeout=60)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'responses'").fetchone():
            return Counter(), 0  # killed before the tables were made
        rows = connection.execute(
            "SELECT a.question_key, r.prompt_tokens + r.completion_tokens FROM responses r "
            "JOIN attempts a ON a.id = r.attempt_id WHERE r.error IS NULL"
        ).fetchall()
    return Counter(key for key, _ in rows), sum(tokens for _, tokens in rows)


def command(suite: Path, server: FaultServer, samples: int) -> tuple[object, ...]:
    asked = ("generate", "level1/1", "--suite", suite, "--model", "openai:any", "--base-url", server.url)
    more = ("--backend", "cpp", "--no-measure", "--concurrency", 4, "--retries", 6)
    return (*asked, *more, "--samples", samples)


def kill_both(program: Program, asked: tuple[object, ...], generator: random.Random) -> None:
    """Runs the command twice at once, and kills one or both of them somewhere on their way."""
    processes = [program.start(*asked) for _ in range(2)]
    time.sleep(generator.uniform(0.8, 3.0))
    for process in processes:
        kill(process)


def finish(program: Program, asked: tuple[object, ...]) -> None:
    """Runs the command twice at once to its end, as often as the server's faults ask for."""
    for _ in range(5):
        processes = [program.start(*asked) for _ in range(2)]
        codes = []
        for process in processes:
            _, stderr = process.communicate(timeout=240)
            assert "Traceback" not in stderr, stderr
            codes.append(process.returncode)
        if codes == [0, 0]:
            return
    raise AssertionError(f"not done after five times: {codes}")


@pytest.mark.ci
@pytest.mark.parametrize(
    ("samples", "kills"),
    [(40, 2), pytest.param(300, 10, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])],
)
def test_every_attempt_is_there_once_and_no_stored_answer_is_asked_for_again(
    program: Program, suite: Path, samples: int, kills: int
) -> None:
    program.extra = {"OPENAI_API_KEY": "none"}
    generator = random.Random(samples)
    with start(share=0.2, delay_s=0.2) as server:
        asked = command(suite, server, samples)
        kept: list[tuple[set[str], dict[str, int]]] = []
        for _ in range(kills):
            kill_both(program, asked, generator)
            kept.append((set(stored(program)[0]), server.counts()["asked"]))
        finish(program, asked)
        counts = server.counts()
        assert program.statuses() == {("level1/1", n, 1): Status.NO_CODE for n in range(samples)}
        keys, tokens = stored(program)
        assert len(keys) == samples and set(keys.values()) == {1}
        for before, asked_before in kept:
            again = [key for key in before if counts["asked"][key] != asked_before[key]]
            assert again == [], "asked again, though the answer was stored"
        # An answer can only be lost between the server's last byte and our commit, by a kill.
        lost = sum(counts["answered"].values()) - samples
        assert 0 <= lost <= 8 * kills
        assert tokens == counts["prompt_tokens"] + counts["completion_tokens"] - lost * TOKENS
        print(f"\n{counts['requests']} requests, {lost} answers lost by {2 * kills} kills")
        done = counts["requests"]
        finish(program, asked)
        assert server.counts()["requests"] == done


@pytest.mark.ci
def test_two_commands_share_the_work(program: Program, suite: Path) -> None:
    program.extra = {"OPENAI_API_KEY": "none"}
    with start(delay_s=0.5) as server:
        asked = command(suite, server, 24)
        processes = [program.start(*asked) for _ in range(2)]
        for process in processes:
            stdout, stderr = process.communicate(timeout=120)
            assert process.returncode == 0, stderr
            assert "24 attempts" in stdout
        counts = server.counts()
        assert counts["requests"] == len(counts["asked"]) == 24
        assert counts["most_in_flight"] > 4, "one of them did nothing"


@pytest.mark.ci
def test_a_stopped_command_is_waited_for_and_a_killed_one_is_not(program: Program, suite: Path) -> None:
    program.extra = {"OPENAI_API_KEY": "none"}
    with start(delay_s=1.0) as server:
        asked = command(suite, server, 4)
        first = program.start(*asked)
        while server.counts()["requests"] < 4:
            assert first.poll() is None
            time.sleep(0.05)
        os.kill(first.pid, signal.SIGSTOP)
        second = program.start(*asked)
        with pytest.raises(subprocess.TimeoutExpired):
            second.communicate(timeout=5)
        first.kill()
        first.communicate(timeout=60)
        stdout, _ = second.communicate(timeout=60)
        assert second.returncode == 0 and "4 attempts" in stdout
        assert max(server.counts()["asked"].values()) == 2
