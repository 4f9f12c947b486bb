"""What every command does alike: each option once, -h, mistakes told in our words and with what was meant."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.main import get_command

from kernelproof.cli.app import command_line
from kernelproof.cli.commands import Command, Group, option_name
from kernelproof.cli.mistakes import Misuse, told
from kernelproof.errors import KernelproofError, UsageError
from kernelproof.types import VerifySettings
from kernelproof.version import __version__
from tests.cli.program import Program
from tests.types.test_explain import FOREIGN

ALSO_FOREIGN = (
    *FOREIGN,
    "Invalid value",
    "No such",
    "valid integer",
    "unexpected",
    "requires an argument",
    "usage:",
)
"""Phrases of the libraries that parse command lines and values."""
ROOT: Any = get_command(command_line())


def commands(group: Any = ROOT, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words, the program itself and its groups too."""
    yield above, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*above, name))


COMMANDS = dict(commands())
OPTIONS = [
    pytest.param(words, option, id=" ".join((*words, option_name(option))))
    for words, command in COMMANDS.items()
    for option in command.params
    if option.param_type_name == "option"
]


def parsed(words: tuple[str, ...], arguments: list[str]) -> str:
    """What is said of a command's arguments; empty when they can be parsed."""
    try:
        COMMANDS[words].make_context(
            " ".join(words), arguments, parent=typer.Context(ROOT, info_name="kernelproof")
        )
    except Misuse as error:
        return told(error)
    except KernelproofError as error:
        return str(error)
    except (typer.Exit, SystemExit):
        return ""
    return ""


def test_every_command_has_our_manners() -> None:
    assert len(COMMANDS) > 12
    for words, command in COMMANDS.items():
        assert isinstance(command, Group if hasattr(command, "commands") else Command), words


@pytest.mark.parametrize(("words", "option"), OPTIONS)
def test_an_option_is_given_once_unless_it_may_be_repeated(words: tuple[str, ...], option: Any) -> None:
    name = option_name(option)
    if option.is_flag:
        given, told_of = [name, name], ""
    elif option.nargs > 1:
        given, told_of = [name, "2", "3", name, "4", "5"], " (2 3 and 4 5)"
    else:
        given, told_of = [name, "2", f"{name}=3"], " (2 and 3)"
    said = parsed(words, given)
    if option.multiple:
        assert "was given" not in said
    else:
        assert said == f"{name} was given twice{told_of}; give it once"
    for other in option.secondary_opts:
        assert parsed(words, [name, other, name]) == (
            f"{name} was given 3 times ({name}, {other} and {name}); give it once"
        )


def test_what_looks_like_an_option_but_is_a_value_is_not_counted() -> None:
    assert parsed(("verify",), ["x.py", "--run", "--size", "--size", "small"]) == ""
    assert parsed(("verify",), ["--size", "small", "--", "--size"]) == ""


@pytest.mark.parametrize(("words", "option"), OPTIONS)
def test_no_bad_value_is_told_in_words_of_a_library(words: tuple[str, ...], option: Any) -> None:
    if option.is_flag:
        cases = [[f"{option_name(option)}=3"]]
    else:
        bad = ["", "x", "-1", "0", "1e999", "nan", "9" * 40, "\x1b[2J", "\udcff", "a" * 5000]
        cases = [[option_name(option), value] for value in bad] + [[option_name(option)]]
    for case in cases:
        said = parsed(words, case)
        assert not [phrase for phrase in ALSO_FOREIGN if phrase in said], (case, said)
        assert "\n" not in said and len(said) < 6000


@pytest.mark.parametrize("field", VerifySettings.model_fields)
def test_no_bad_setting_is_told_in_words_of_a_library(field: str) -> None:
    from kernelproof import Verifier

    bad = [None, "", "x", -1, 0, 1.5, float("nan"), 10**400, [], {}, b"\xff", "\ud800", object()]
    for value in bad:
        try:
            Verifier(**{"backend": "cpp", field: value})
        except UsageError as error:
            assert not [phrase for phrase in ALSO_FOREIGN if phrase in str(error)], (value, str(error))
            assert "\n" not in str(error)


MISTAKES = {
    "verfy": "there is no command 'verfy'; did you mean 'verify'?",
    "problems lst": "there is no command 'problems lst'; did you mean 'problems list'?",
    "cache zzz": "there is no command 'cache zzz'; there are: info, prune, clear",
    "verify x --sise small": "there is no option --sise; did you mean --size?",
    "--versoin": "there is no option --versoin; did you mean --version?",
    "verify": "FILE is missing; kernelproof verify --help says what it is",
    "show 1 2": "kernelproof show takes no more words: 2 is too much",
    "verify x --run": "--run needs a value",
    "verify x --again=yes": "--again takes no value",
    "verify x --trials many": "--trials must be a whole number, not 'many'",
    "generate relu --model replay:demo --samples 0": "--samples must be 1 or more, not 0",
    "problems list --level one": "--level must be a whole number, not 'one'",
    "help": "there is no command 'help'; did you mean 'kernelproof --help'?",
    "help verify": "there is no command 'help'; did you mean 'kernelproof verify --help'?",
    "problems help list": "there is no command 'help'; did you mean 'kernelproof problems list --help'?",
    "version": "there is no command 'version'; did you mean 'kernelproof --version'?",
    "generate relu -m replay:demo": (
        "there is no option -m; options are written in full: --model, --max-tokens, --max-cost, "
        "--max-tokens-total ..."
    ),
    "verify x -p relu": "there is no option -p; options are written in full: --problem, --purity",
    "leaderboard --sort speedup": (
        "there is no option --sort; kernelproof leaderboard --help lists what there is"
    ),
    "leaderboard relu": (
        "kernelproof leaderboard takes no more words: relu is too much; a problem is given as --problem relu"
    ),
    "verify nothing.py": "nothing.py cannot be read: No such file or directory",
    "generate relu --model gpt-5": (
        "no model 'gpt-5'; did you mean openai:gpt-5? or write openai:MODEL, replay:FILE or replay:demo"
    ),
    "generate relu,softmax --model replay:demo": (
        "no problem 'relu,softmax' among the 42 of suite kernelproof; give several with spaces between them: "
        "relu softmax"
    ),
    "generate level 1 --model replay:demo": (
        "no problem 'level' among the 42 of suite kernelproof; its folders are level1, level2, level3"
    ),
    "generate levl1 --model replay:demo": (
        "no problem 'levl1' among the 42 of suite kernelproof; did you mean the folder level1?"
    ),
    "export parquett --output x": (
        "FORMAT: 'parquett' is no format; there are: jsonl, parquet, huggingface, kernelbench, pairs, inspect"
    ),
    "leaderboard --numerics fp23": "--numerics: 'fp23' is not one of 'fp32', 'tf32'; did you mean 'fp32'?",
}


@pytest.mark.few(10)
@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line(program: Program, line: str) -> None:
    done = program.run(*line.split(), code=2)
    assert (done.stdout, done.stderr) == ("", f"kernelproof: {MISTAKES[line]}\n")


@pytest.mark.parametrize(
    "line", ["gpus", "callers list", "callers revoke ana", "artefacts info --artefacts folder"]
)
def test_an_operator_is_told_how_a_missing_database_is_made(program: Program, line: str) -> None:
    said = program.run(*line.split(), code=2).stderr
    assert "there is no database" in said and "kernelproof serve-api makes it" in said


@pytest.mark.few(10)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_h_is_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for option in ("-h", "--help"):
        command_line()([*words, option], prog_name="kernelproof", standalone_mode=False)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert shown[0].startswith(f"Usage: {' '.join(('kernelproof', *words))} ")


def test_a_group_alone_shows_its_help(program: Program) -> None:
    for words in ((), ("problems",), ("cache",)):
        done = program.run(*words, code=2)
        assert done.stderr.startswith(f"Usage: {' '.join(('kernelproof', *words))} ")


def test_the_version(program: Program) -> None:
    assert program.run("--version").stdout == f"kernelproof {__version__}\n"


def test_the_module_is_the_command(program: Program) -> None:
    command = [sys.executable, "-m", "kernelproof"]
    done = subprocess.run(
        [*command, "--version"], env=program.environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"kernelproof {__version__}\n"
    done = subprocess.run(
        [*command, "shwo"], env=program.environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        2,
        "kernelproof: there is no command 'shwo'; did you mean 'show'?\n",
    )
