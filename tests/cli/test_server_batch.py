"""`generate --batch`: one batch at the server, and a killed command's batch is waited for, not made again."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from kernelproof.types import Status
from tests.batchserver import COMPLETION_TOKENS, PROMPT_TOKENS, serve
from tests.cli import material
from tests.cli.material import QUICK
from tests.cli.program import Program


@pytest.mark.slow
def test_a_killed_command_leaves_a_batch_that_the_next_one_waits_for(program: Program, suite: Path) -> None:
    program.extra = {"OPENAI_API_KEY": "none"}
    with serve(seconds=1000) as server:
        command = ("generate", "level1/1", "--suite", suite, "--model", "openai:m", "--base-url", server.url)
        command += QUICK
        killed = program.start(*command, "--batch", "--samples", 5)
        deadline = time.monotonic() + 60
        while not server.batches:
            assert time.monotonic() < deadline and killed.poll() is None
            time.sleep(0.05)
        time.sleep(0.2)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        server.batches["batch_0"]["due"] = server.seconds = 0.0
        done = program.run(*command, "--batch", "--samples", 7)
        assert "7 attempts" in done.stdout
        assert [len(batch["lines"]) for batch in server.batches.values()] == [5, 2]
        assert set(server.asked.values()) == {1} and len(server.asked) == 7
        attempts = program.attempts()
        assert {attempt.status for attempt in attempts} == {Status.NO_CODE}
        usages = [a.response.usage for a in attempts if a.response and a.response.usage]
        assert [(u.prompt_tokens, u.completion_tokens) for u in usages] == [
            (PROMPT_TOKENS, COMPLETION_TOKENS)
        ] * 7
        with program.store() as store:
            assert store.server_batches.open_batches("openai:m", server.url) == []
        before = len(server.requests)
        program.run(*command, "--batch", "--samples", 7)
        program.run(*command, "--no-batch", "--samples", 5)  # how it is asked is no part of the question
        assert len(server.requests) == before


@pytest.mark.slow
def test_questions_that_follow_are_one_batch_and_the_lines_say_what_is_waited_for(
    program: Program, suite: Path
) -> None:
    """The answers are judged one after the other, and each leads to a question."""
    program.extra = {"OPENAI_API_KEY": "none"}
    with serve(text=material.fenced(material.wrong()), seconds=1) as server:
        command = ("generate", "level1/1", "--suite", suite, "--model", "openai:m", "--base-url", server.url)
        done = program.run(*command, *QUICK, "--batch", "--samples", 5, "--turns", 2, "--json")
        assert [len(batch["lines"]) for batch in server.batches.values()] == [5, 5]
    assert len(program.statuses()) == 10
    events = [json.loads(line) for line in done.stdout.splitlines()]
    told = [event for event in events if event["event"] == "batched"]
    assert {event["batch"] for event in told} == {None, "batch_0", "batch_1"}
    assert any("of 5 answered, since" in event["reason"] for event in told)
    assert all(model["batches"] == [] for model in events[-1]["models"])
