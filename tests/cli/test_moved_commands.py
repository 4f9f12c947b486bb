"""Commands that moved into a group: the old spelling names the new one, and is offered nowhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelproof.cli.app import COMMANDS, MOVED
from tests.cli.program import Program


@pytest.mark.parametrize("old", MOVED)
def test_an_old_name_is_answered_with_the_new_one(program: Program, old: str) -> None:
    new = MOVED[old]
    for options in ((), ("night", "--no-such-option", "x"), ("--help",)):
        done = program.run(old, *options, code=2)
        assert (done.stdout, done.stderr) == (
            "",
            f"kernelproof: `{old}` is `{new}` now: kernelproof {new} ...\n",
        )
    assert program.run(*new.split(), "--help").stdout.startswith(f"Usage: kernelproof {new} ")
    assert list(program.workspace.iterdir()) == []


def test_old_names_are_not_offered(program: Program) -> None:
    listed = program.run("--help").stdout
    assert len(COMMANDS) <= 18 and [old for old in MOVED if f"\n  {old} " in listed] == []
    line = {"COMP_WORDS": "kernelproof ", "COMP_CWORD": "1", "_KERNELPROOF_COMPLETE": "complete_bash"}
    assert replace(program, extra={**program.extra, **line}).run().stdout.split() == list(COMMANDS)


@pytest.mark.parametrize(
    ("words", "environment"),
    [(("--until-input-ends",), {}), ((), {"SLURM_JOB_NAME": "kernelproof-0a1b2c3d-judge-0"})],
)
def test_a_worker_that_an_older_version_starts_is_one(
    program: Program, words: tuple[str, ...], environment: dict[str, str]
) -> None:
    """A keeper goes on through an upgrade in place, and so does a job of Slurm that waits or is put back."""
    older = replace(program, extra={**program.extra, **environment})
    refused = older.run("workers", *words, "--judges", 2, code=2).stderr
    assert refused == "kernelproof: --judges belongs to --ray or --slurm; give one of them\n"
