"""`status` from another terminal, and the event lines for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.faultserver import start


@pytest.mark.ci
def test_a_batch_is_seen_while_it_works_and_when_it_was_killed(program: Program, suite: Path) -> None:
    program.extra = {"OPENAI_API_KEY": "none"}
    command = ("generate", "level1/1", "--suite", suite, "--model", "openai:any", "--run", "night")
    with start(delay_s=2.0) as server:
        more = ("--base-url", server.url, "--samples", 200, "--backend", "cpp", "--no-measure")
        process = program.start(*command, *more)
        assert process.stdout is not None
        process.stdout.readline()
        seen = ""
        while "at work" not in seen or "no_code" not in seen:
            assert process.poll() is None
            seen = program.run("runs", "status", "night").stdout
        assert "openai:any" in seen and "/200" in seen and "tokens" in seen
        process.kill()
        process.communicate(timeout=60)
    after = program.run("runs", "status").stdout
    assert "killed, or lost its machine" in after
    (batch,) = json.loads(program.run("runs", "status", "night", "--json").stdout)["batches"]
    assert batch["alive"] is False and batch["config"]["samples"] == 200
    assert "there is no run 'day'" in program.run("runs", "status", "day", code=2).stderr


def test_events_are_lines_of_json(program: Program, suite: Path) -> None:
    program.extra = {"OPENAI_API_KEY": "none"}
    with start() as server:
        command = ("generate", "level1/1", "--suite", suite, "--model", "openai:any", "--samples", 2)
        more = ("--base-url", server.url, "--backend", "cpp", "--no-measure", "--json")
        lines = [json.loads(line) for line in program.run(*command, *more).stdout.splitlines()]
    *events, summary = lines
    assert {event["event"] for event in events} >= {"asking", "sent", "answered", "ended", "over"}
    answered = [event for event in events if event["event"] == "answered"]
    assert [event["usage"]["completion_tokens"] for event in answered] == [50, 50]
    assert sorted(e["sample"] for e in events if e["event"] == "ended") == [0, 1]
    assert summary["event"] == "summary" and summary["ended"] == "done"
    assert summary["models"][0]["statuses"] == {"no_code": 2}
    assert summary["models"][0]["cost_usd"] is None
