"""The home of somebody who is not there is a path that is not there; a dot is the current directory."""

from __future__ import annotations

import pytest

from tests.cli.program import Program


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("generate", "relu", "--model", "replay:~no-such-user/x.jsonl"), "~no-such-user/x.jsonl"),
        (("problems", "prompt", "relu", "--template", "~no-such-user/mine"), "~no-such-user/mine"),
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
