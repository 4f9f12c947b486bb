"""`show` as a person runs it: on a terminal with a pager, and into a file byte for byte."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kernelproof.db.store import open_store
from kernelproof.types import Status
from tests.cli.program import Program
from tests.db import samples

SOURCE = "import torch\r\n\n\nclass ModelNew:\n\tname = 'naïve \x1b[2J'  # no newline at the end"
ANSWER = "```python\n" + SOURCE + "\n```\n" + "A line of prose.\n" * 300


@pytest.fixture
def shown(program: Program) -> Program:
    """A workspace with one attempt."""
    with open_store(program.workspace / "db" / "attempts.sqlite") as store:
        attempt = samples.begin(store, samples.problem(), samples.settings())
        store.record_response(attempt, samples.response(ANSWER))
        store.record_extraction(attempt, samples.extraction(SOURCE))
    return program


def on_a_terminal(
    program: Program, *arguments: str, keys: bytes = b"", rows: int = 24, **extra: str
) -> bytes:
    """What a terminal of 80 columns gets; `keys` are typed once something is shown."""
    screen = {"TERM": "xterm", "LINES": "24", **extra}  # LINES is out of date
    code, got = program.typed(arguments, columns=80, rows=rows, extra=screen, keys=keys, after=b"prose")
    assert code == 0, got
    assert b"Traceback" not in got
    return got


def pager(program: Program, script: str) -> str:
    """A pager that notes that it was called, and what it got."""
    file = program.workspace / "pager.sh"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize(("part", "stored"), [("--source", SOURCE), ("--response", ANSWER)])
def test_a_text_is_written_byte_for_byte(shown: Program, tmp_path: Path, part: str, stored: str) -> None:
    file = tmp_path / "written"
    code, errors = shown.into(os.open(file, os.O_WRONLY | os.O_CREAT), "show", "1", part)
    assert (code, errors) == (0, "")
    assert file.read_bytes() == stored.encode()


def test_a_terminal_gets_no_byte_that_steers_it(shown: Program) -> None:
    got = on_a_terminal(shown, "show", "--source", PAGER="")
    assert b"naive" not in got and "naïve".encode() in got and b"\x1b" not in got


def test_what_is_longer_than_the_screen_goes_to_the_pager(shown: Program) -> None:
    called = pager(shown, f"cat > {shown.workspace}/paged; echo PAGED")
    got = on_a_terminal(shown, "show", "--all", PAGER=called)
    assert got.strip().endswith(b"PAGED") and b"prose" not in got
    paged = (shown.workspace / "paged").read_text()
    assert paged.count("A line of prose.") == 300 and "class ModelNew" in paged
    assert "\x1b[2J" not in paged and "\x1b[1m" in paged  # colours of ours, nothing of the model's


def test_what_fits_is_printed(shown: Program) -> None:
    called = pager(shown, "cat > /dev/null; echo PAGED")
    assert b"PAGED" not in on_a_terminal(shown, "show", "--source", PAGER=called)
    assert b"PAGED" not in on_a_terminal(shown, "show", "--response", rows=1000, PAGER=called)


@pytest.mark.few(2)
@pytest.mark.parametrize("chosen", ["", "cat", "/nowhere/pager", "'unbalanced"])
def test_without_a_pager_all_is_printed(shown: Program, chosen: str) -> None:
    assert on_a_terminal(shown, "show", "--all", PAGER=chosen).count(b"A line of prose.") == 300


def test_a_pager_that_is_left_early(shown: Program) -> None:
    assert b"prose" in on_a_terminal(shown, "show", "--all", PAGER=pager(shown, "head -200"))
    on_a_terminal(shown, "show", "--all", PAGER=pager(shown, "exit 3"))


@pytest.mark.skipif(shutil.which("less") is None, reason="needs less")
def test_less_is_the_pager(shown: Program) -> None:
    got = on_a_terminal(shown, "show", "--response", keys=b"q", PAGER="less")
    assert 10 < got.count(b"A line of prose.") < 60


def test_into_a_pipe_nothing_is_paged(shown: Program) -> None:
    called = pager(shown, "cat > /dev/null; echo PAGED")
    shown.extra = {"PAGER": called}
    printed = shown.run("show", "--all").stdout
    assert "PAGED" not in printed and printed.count("A line of prose.") == 300 and "\x1b" not in printed


@pytest.fixture
def searched(program: Program) -> Program:
    """A workspace with one sample of five attempts: two correct, one of them retracted."""
    of, run = samples.problem(), samples.settings().model_copy(update={"strategy": "evolve", "turns": 9})
    with open_store(program.workspace / "db" / "attempts.sqlite") as store:
        store.add_problem(of)
        number = store.begin_run(run)
        told = [(None, 1.5), (1, None), (1, 1.8), (3, 9.0)]
        for turn, (parent, speedup) in enumerate(told, start=1):
            attempt = store.begin_attempt(number, samples.key(of, turn=turn), samples.prompt(), parent)
            status = Status.CORRECT if speedup else Status.WRONG_OUTPUT
            judged = samples.verification(of, status, speedup, verify=run.verify)
            store.record_verification(attempt, judged)
            store.finish_attempt(attempt, status)
        store.retract(4, "too good")
        store.begin_attempt(number, samples.key(of, turn=5), samples.prompt(), 4)
        samples.begin(store, of, run, sample=1)  # another sample
    return program


TREE = """\
level1/1, sample 0 of run 1: replay:a.jsonl, strategy evolve, 5 attempts, best #3
└── #1 turn 1  correct  1.50× [1.48, 1.52] faster
    ├── #2 turn 2  wrong_output
    └── #3 turn 3  correct  1.80× [1.78, 1.82] faster  best
        └── #4 turn 4  retracted
            └── #5 turn 5  in progress
"""


def test_the_tree_of_a_sample_is_plain_in_a_pipe_and_coloured_on_a_terminal(searched: Program) -> None:
    assert searched.run("show", "1", "--tree").stdout == TREE
    assert searched.run("show", "#5", "--tree").stdout == TREE
    got = on_a_terminal(searched, "show", "1", "--tree", PAGER="")
    assert b"\x1b[32mcorrect" in got and b"retracted" in got


def test_the_tree_of_a_single_attempt_is_that_attempt(stored: Program) -> None:
    out = stored.run("show", "--tree").stdout
    assert out.count("\n") == 2 and "none correct" in out and "no_code" in out
