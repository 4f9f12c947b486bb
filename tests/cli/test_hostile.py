"""What a model, a server, a file's name or a problem says steers no terminal, through any door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import material
from tests.cli.conftest import working_in
from tests.cli.material import QUICK, fenced
from tests.cli.program import Program
from tests.faultserver import start
from tests.hostile_texts import harmless

STEERS = "\x1b]0;owned\x07\x1b[2J\x1bc\x9b31m\r\b\x7f\u202e\u2066\u200b\u2060\ufeff\u061c"
"""A title, a cleared screen, a reset, 8-bit controls, overwriting, reordering, no width."""
SOURCE = material.RELU.replace("ReLU of a small matrix.", f"ReLU {STEERS} of a matrix.")
CANDIDATE = material.right().replace("import torch\n", f"# {STEERS}\nimport torch\n").replace("\r", "")
FITS_NOT = CANDIDATE.replace("def forward(self, x):", "def backward(self, x):")
"""It ends before anything is built, and what it says goes the same ways."""
BACKTICKS = "`" * 1_000_000


def test_what_a_folder_of_answers_says(place: Path, program: Program) -> None:
    suite = ("--suite", place / "suite")
    done = program.run("verify", place / "given", *suite, *QUICK, code=1)
    harmless(done.stdout + done.stderr, terminal=False)
    for command in (("leaderboard", "--by", "run"), ("show", "1"), ("show", STEERS)):
        code, printed = program.on_terminal(*command)
        assert code == (2 if STEERS in command else 0)
        harmless(printed, terminal=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`suite`, `given` (files with names), `run` (as KernelBench leaves it)."""
    root = tmp_path_factory.mktemp("hostile")
    level = root / "suite" / "level1"
    level.mkdir(parents=True)
    (level / "1_relu.py").write_text(SOURCE)
    (level / f"2_{STEERS}sines.py").write_text(material.SINES)
    (level / f"3_{STEERS}broken.py").write_text("not python at all")
    given = root / "given" / "relu"
    given.mkdir(parents=True)
    (given / f"a{STEERS}.py").write_text(FITS_NOT)
    (given / f"b{STEERS}.md").write_text(f"no code {STEERS} here")
    run = root / f"run{STEERS}"
    run.mkdir()
    (run / f"level_1_problem_1_sample_0{STEERS}_kernel.py").write_text(FITS_NOT)
    (run / f"{STEERS}notes.txt").write_text("x")
    claim = {"compiled": True, "correctness": True, "runtime": 1.0, "metadata": {"hardware": f"H100{STEERS}"}}
    (run / "eval_results.json").write_text(json.dumps({"1": claim}))
    return root


@pytest.fixture(scope="module")
def filled(place: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A workspace with hostile answers, server's words, files and claims; and what was printed meanwhile."""
    workspace = tmp_path_factory.mktemp("filled") / "workspace"
    answer = place / "answer.md"
    answer.write_text(f"{STEERS}Here:\n{fenced(CANDIDATE)}{BACKTICKS}{STEERS}")
    with working_in(workspace, cache) as program, start(answer=answer) as server:
        program.extra = {"OPENAI_API_KEY": "none"}
        suite = ("--suite", place / "suite")
        usual = ("generate", "level1/1", *suite, "--base-url", server.url, *QUICK, "--retries", "0")
        for model, code in (("fine", 0), ("hostile", 0), ("hostile_words", 3), ("hostile_trouble", 3)):
            command = (*usual, "--model", f"openai:{model}")
            done = program.run(*command, "--run", "piped", code=code)
            harmless(done.stdout + done.stderr, terminal=False)
            got, printed = program.on_terminal(*command, "--run", f"on {STEERS} terminal")
            assert got == code
            harmless(printed, terminal=True)
        for command in (("verify", place / "given", *suite), ("import", place / f"run{STEERS}", *suite)):
            done = program.run(*command, *QUICK, code=None)
            harmless(done.stdout + done.stderr, terminal=False)
            _, printed = program.on_terminal(*command, *QUICK, "--again")
            harmless(printed, terminal=True)
        yield program


DOORS: list[tuple[str, ...]] = [
    ("leaderboard",),
    ("leaderboard", "--by", "model"),
    ("leaderboard", "--by", "kernel"),
    ("leaderboard", "--by", "run"),
    ("leaderboard", "--markdown"),
    ("leaderboard", "--claims"),
    ("leaderboard", "--csv"),
    ("leaderboard", "--claims", "--csv"),
    ("leaderboard", "--json"),
    ("leaderboard", "--claims", "--json"),
    ("report", "-o", "PAGE"),
    ("runs", "status"),
    ("runs", "status", "--json"),
    ("runs", "rejudge", "1"),
    ("runs", "rejudge", "1", "--json"),
    ("runs", "retract", "1", "--reason", STEERS),
    ("problems", "list"),
    ("problems", "list", "--json"),
    ("problems", "check", "level1/1"),
    ("problems", "show", "level1/1", "--json"),
    ("problems", "prompt", "level1/1", "--json"),
    ("verify", "GIVEN", "--json"),
    ("import", "RUN", "--json"),
    ("generate", "all", "--model", f"openai:x{STEERS}", "--dry-run"),
    ("generate", "relu", "--model", "openai:x", "--run", STEERS, "--like", STEERS),
    ("problems", "import", "SUITE", "--to", "NEW"),
    ("problems", "import", "SUITE", "--to", "NEW", "--skip-broken"),
    ("show", STEERS),
    (f"{STEERS}x",),
    ("show", f"--{STEERS}x"),
]
EXACT: list[tuple[str, ...]] = [
    ("problems", "show", "level1/1"),
    ("problems", "prompt", "level1/1"),
]
"""Into a pipe these write a text as it is; on a terminal it is cleaned."""


def at(place: Path, command: tuple[str, ...], tmp_path: Path) -> list[str]:
    words = {
        "GIVEN": place / "given",
        "RUN": place / f"run{STEERS}",
        "SUITE": place / "suite",
        "NEW": tmp_path / f"new{STEERS}",
        "PAGE": tmp_path / f"page{STEERS}.html",
    }
    suite = ["--suite", str(place / "suite")]
    takes = command[0] in ("problems", "verify", "import", "generate") and "SUITE" not in command
    return [str(words.get(word, word)) for word in command] + (suite if takes else [])


@pytest.mark.ci
@pytest.mark.parametrize("command", DOORS, ids=lambda words: ascii(" ".join(words))[:60])
def test_a_door(filled: Program, place: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    arguments = at(place, command, tmp_path)
    done = filled.run(*arguments, code=None)
    assert done.stdout + done.stderr
    harmless(done.stdout + done.stderr, terminal=False)
    _, printed = filled.on_terminal(*arguments)
    harmless(printed, terminal=True)


@pytest.mark.ci
@pytest.mark.parametrize("command", EXACT, ids=" ".join)
def test_a_text_is_exact_in_a_pipe_and_cleaned_on_a_terminal(
    filled: Program, place: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    arguments = at(place, command, tmp_path)
    assert "\x1b]0;owned\x07" in filled.run(*arguments).stdout
    code, printed = filled.on_terminal(*arguments)
    assert code == 0
    harmless(printed, terminal=True)


@pytest.mark.ci
def test_every_attempt_is_shown(filled: Program) -> None:
    """Of attempts that differ in their run's name alone, the one whose name is hostile."""
    attempts = filled.attempts()
    assert len(attempts) > 8
    unlike = {(a.run.kind, a.run.model, a.status, a.key.problem_id): a for a in attempts}
    texts = [one.response.text or "" for a in attempts for one in a.responses if one.response is not None]
    assert any("\ud800" in text for text in texts), "as it came, a lone surrogate too"
    assert any(STEERS.partition("\r")[0] in text and BACKTICKS in text for text in texts)
    for attempt in unlike.values():
        harmless(filled.run("show", attempt.id).stdout, terminal=False)
        harmless(filled.run("show", attempt.id, "--json").stdout, terminal=False)
        for part in ((), ("--source",), ("--response",), ("--prompt",), ("--log",), ("--checks",)):
            _, printed = filled.on_terminal("show", attempt.id, *part)
            harmless(printed, terminal=True)
            assert "Traceback" not in printed
