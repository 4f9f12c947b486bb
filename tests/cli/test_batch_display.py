"""A batch's display in processes of its own: on a terminal, in a pipe, for a reader that is slow or gone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import terminal
from tests.cli.program import ROOT

BEGIN = """
import sys, time
from kernelproof.cli.batch_display import BatchDisplay
from kernelproof.runs.batch import Outcome
from kernelproof.runs.events import Event, Phase
from kernelproof.types import AttemptKey, Response, Status, Usage

def event(sample, phase, turn=1, **facts):
    key = AttemptKey(problem_id="level1/1", problem_sha256="0" * 64, sample=sample, turn=turn)
    return Event("openai:m\\x1b[2J", key, phase, attempt_id=sample + 1, **facts)

def attempt(sample, status=Status.NO_CODE):
    yield event(sample, Phase.SENT)
    for tokens in range(50):
        yield event(sample, Phase.ANSWERING, tokens=tokens)
    usage = Usage(prompt_tokens=100, completion_tokens=49)
    yield event(sample, Phase.ANSWERED, response=Response(text="x", usage=usage, cost_usd=0.5))
    yield event(sample, Phase.ENDED, status=status, note="no code \\x1b[31mhere")
    yield event(sample, Phase.OVER)

def key(sample):
    return event(sample, Phase.OVER).model, event(sample, Phase.OVER).key
"""


def start(script: str, **streams: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm", "COLUMNS": "", "LINES": ""}
    return subprocess.Popen([sys.executable, "-c", BEGIN + script], env=environment, **streams)  # type: ignore[call-overload,no-any-return]


def piped(script: str) -> str:
    done = start(script, stdout=subprocess.PIPE)
    output, _ = done.communicate(timeout=60)
    assert done.returncode == 0
    return output.decode()


WHOLE = """
display = BatchDisplay([("openai:m\\x1b[2J", 3, 1)], FORM)
with display:
    for sample in range(3):
        for each in attempt(sample):
            display.on_event(each)
statuses = {key(sample): Status.NO_CODE for sample in range(3)}
display.summary(Outcome(statuses), "place/attempts.sqlite", "my run", " --workspace w")
"""


def test_plain_lines_and_the_summary() -> None:
    output = piped(WHOLE.replace("FORM", '"plain"'))
    assert "\x1b" not in output
    assert output.splitlines() == [
        *(f"level1/1     sample {sample} turn 1  no_code" for sample in range(3)),
        "3 attempts in place/attempts.sqlite",
        "     3  no_code",
        "what failed most, and the reason given most often",
        "   3  no_code: no code here (kernelproof show 3 --workspace w)",
        "answers  3 answers asked for",
        "tokens   300 for prompts, 147 for answers",
        "cost     $1.50",
        "see more: kernelproof leaderboard --run 'my run' --workspace w · kernelproof show 3 --workspace w",
    ]


def test_json_lines_say_each_event_and_tokens_once_a_second() -> None:
    output = piped(WHOLE.replace("FORM", '"json"'))
    assert output.isascii()
    *events, summary = map(json.loads, output.splitlines())
    own = [event for event in events if event["sample"] == 1]
    assert [event["event"] for event in own] == ["sent", "answering", "answered", "ended", "over"]
    assert own[2]["usage"]["completion_tokens"] == 49 and own[2]["cost_usd"] == 0.5
    assert own[3]["status"] == "no_code" and own[3]["reason"].startswith("no code") and not own[3]["kept"]
    assert {event["model"] for event in events} == {"openai:m\x1b[2J"}, "exactly as it is, for machines"
    assert summary["event"] == "summary" and summary["statuses"] == {"no_code": 3}
    assert summary["models"][0]["cost_usd"] == 1.5 and summary["run"] == "my run"


@pytest.mark.ci
def test_a_reader_that_does_not_read_stops_no_work() -> None:
    script = """
display = BatchDisplay([("openai:m", 1000, 1)], "json")
with display:
    for sample in range(1000):
        for each in attempt(sample):
            display.on_event(each)
    print("worked", file=sys.stderr, flush=True)
"""
    process = start(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline() == b"worked\n"  # a pipe holds 64 KiB, and nobody has read anything
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    ended = [line for line in output.splitlines() if b'"ended"' in line]
    assert len(ended) == 1000, "what is needed is printed to the last line"


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["plain", "json"])
def test_a_reader_that_is_gone_is_noticed_though_nothing_happens(form: str) -> None:
    script = f"""
display = BatchDisplay([("openai:m", 1, 1)], {form!r})
with display:
    for each in attempt(0):
        display.on_event(each)
    print("idle", file=sys.stderr, flush=True)
    while not display.unread:
        time.sleep(0.01)
    try:
        display.on_event(event(1, Phase.ENDED, status=Status.NO_CODE))
    except BrokenPipeError:
        print("gone", file=sys.stderr, flush=True)
"""
    process = start(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline()
    assert process.stderr is not None and process.stderr.readline() == b"idle\n"  # else an event notices it
    process.stdout.close()
    said, late = process.stderr.read().split(b"gone\n")
    assert said == b"" and (late == b"" or late.startswith(_LATE))
    process.wait(timeout=60)


_LATE = b"Exception ignored in: <_io.TextIOWrapper name='<stdout>' mode='w' encoding='utf-8'>\n"
"""The interpreter says it at its end where a line was still on its way."""


@pytest.mark.ci
def test_a_disk_that_is_full_is_an_error_of_its_own() -> None:
    script = """
display = BatchDisplay([("openai:m", 1, 1)], "plain")
with display:
    try:
        while True:
            display.on_event(event(1, Phase.ENDED, status=Status.NO_CODE))
            time.sleep(0.01)
    except OSError as error:
        print(error.strerror, display.unread, file=sys.stderr)
        sys.stderr.flush()
        import os
        os._exit(0)
"""
    with Path("/dev/full").open("w") as full:
        process = start(script, stdout=full.fileno(), stderr=subprocess.PIPE)
        _, said = process.communicate(timeout=60)
    assert said == b"No space left on device False\n"


def on_terminal(script: str, width: int, seconds: float = 60.0) -> str:
    """What a terminal of this width gets to see."""
    ours, theirs = terminal.opened(width)
    process = start(script, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b"".join(terminal.pieces(ours, seconds))
    assert process.wait(timeout=60) == 0
    return seen.decode()


@pytest.mark.clock
def test_a_terminal_shows_silence_while_nothing_happens() -> None:
    script = """
import kernelproof.report.progress as shown
shown.LONG_SILENCE_S = 0.5
display = BatchDisplay([("openai:m\\x1b[2J", 2, 1)], "live")
with display:
    for each in attempt(0):
        display.on_event(each)
    display.on_event(event(1, Phase.SENT))
    time.sleep(2.5)
display.summary(Outcome({key(0): Status.NO_CODE}), "place", None)
"""
    seen = on_terminal(script, 80)
    assert "\x1b[2J" not in seen
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen).replace("\r", "")
    drawings = text.count("samples")
    assert 4 <= drawings <= 20, "it is drawn anew, and not more than four times a second"
    assert "no sign of the server for 2 s" in text
    assert text.rstrip().endswith("see more: kernelproof leaderboard · kernelproof show 1")


@pytest.mark.clock
def test_a_table_that_is_slow_to_draw_still_moves() -> None:
    script = """
def spin():
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
display = BatchDisplay([("openai:m", 2, 1)], "live", spin)
with display:
    display.on_event(event(1, Phase.SENT))
    time.sleep(6)
"""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", on_terminal(script, 120))
    assert text.count("samples") >= 4, "once a second, though each drawing takes a tenth of a second"
