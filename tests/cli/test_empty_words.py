"""An empty word, as a script's unset variable leaves it, is a mistake: it is not the current directory. The
home of somebody who is not there is one that is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer

from kernelproof.cli.app import command_line
from kernelproof.cli.options import given_path
from tests.cli.program import Program

PATHS = [
    ("verify", ""),
    ("verify", "x.py", "--workspace", ""),
    ("verify", "x.py", "--suite="),
    ("generate", "relu", "--model", "replay:demo", "--suite", ""),
    ("generate", "relu", "--model", "replay:demo", "--record", ""),
    ("leaderboard", "--workspace", ""),
    ("show", "--workspace", ""),
    ("reproduce", "1", "--workspace", ""),
    ("doctor", "--workspace", ""),
    ("prompt", "relu", "--suite", ""),
    ("problems", "list", "--suite", ""),
]
NAMES = [
    ("verify", "x.py", "--run", ""),
    ("generate", "relu", "--model", "replay:demo", "--run="),
    *(("leaderboard", option, "") for option in ("--run", "--problem", "--model", "--gpu", "--size")),
]


@pytest.mark.parametrize("command", PATHS, ids=" ".join)
def test_an_empty_path(program: Program, command: tuple[str, ...]) -> None:
    done = program.run(*command, code=2)
    name = _option(command) if command != ("verify", "") else "FILE"
    said = f"kernelproof: {name}: the path is empty; for the current directory give a dot\n"
    assert (done.stderr, done.stdout) == (said, "")
    assert list(program.workspace.iterdir()) == []


@pytest.mark.parametrize("command", NAMES, ids=" ".join)
def test_an_empty_name(program: Program, command: tuple[str, ...]) -> None:
    done = program.run(*command, code=2)
    said = f"kernelproof: {_option(command)}: it is empty; give a value, or leave the option out\n"
    assert done.stderr == said


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("generate", "relu", "--model", "replay:~no-such-user/x.jsonl"), "~no-such-user/x.jsonl"),
        (("prompt", "relu", "--template", "~no-such-user/mine"), "~no-such-user/mine"),
        (("verify", "~no-such-user/x.py", "--problem", "relu"), "~no-such-user/x.py"),
        (("leaderboard", "--workspace", "~no-such-user"), "~no-such-user is not a directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_home_of_nobody(program: Program, command: tuple[str, ...], said: str) -> None:
    assert said in program.run(*command, code=2).stderr


def test_a_dot_is_the_current_directory(program: Program) -> None:
    done = program.run("verify", ".", "--workspace", ".", "--backend", "cpp", code=2)
    assert ". holds no candidates" in done.stderr


def test_every_path_of_every_command_is_parsed_so() -> None:
    found = 0
    for command in _commands(command_line()):
        for name, hint in get_type_hints(command, include_extras=True).items():
            if Path in (kinds := get_args(hint)) or any(Path in get_args(kind) for kind in kinds):
                assert hint.__metadata__[0].parser is given_path, f"{command.__name__}: {name}"
                found += 1
    assert found >= len(PATHS)


def _commands(group: typer.Typer) -> list[Any]:
    own = [command.callback for command in group.registered_commands]
    below = [one for inner in group.registered_groups for one in _commands(inner.typer_instance)]
    return own + below


def _option(command: tuple[str, ...]) -> str:
    return next(word.removesuffix("=") for word in reversed(command) if word.startswith("--"))
