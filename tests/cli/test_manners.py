"""What every command does alike: each option once, -h, mistakes in a line; what a kind of option refuses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.main import get_command

from kernelproof.cli.app import command_line
from kernelproof.cli.commands import Command, Group, Misuse, misuse, option_name
from kernelproof.errors import KernelproofError, UsageError
from kernelproof.types import VerifySettings
from kernelproof.version import __version__
from tests.cli.program import Program
from tests.types.test_explain import FOREIGN

ROOT: Any = get_command(command_line())


def commands(group: Any = ROOT, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words, the program itself and its groups too."""
    yield above, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*above, name))


COMMANDS = dict(commands())
OPTIONS = [
    (words, option)
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
        return misuse(error)
    except KernelproofError as error:
        return str(error)
    except (typer.Exit, SystemExit):
        return ""
    return ""


def test_every_command_has_our_manners() -> None:
    assert len(COMMANDS) > 12
    for words, command in COMMANDS.items():
        assert isinstance(command, Group if hasattr(command, "commands") else Command), words


def test_an_option_is_given_once_unless_it_may_be_repeated() -> None:
    for words, option in OPTIONS:
        name = option_name(option)
        if option.is_flag:
            given, values = [name, name], ""
        elif option.nargs > 1:
            given, values = [name, "2", "3", name, "4", "5"], " (2 3 and 4 5)"
        else:
            given, values = [name, "2", f"{name}=3"], " (2 and 3)"
        said = parsed(words, given)
        if option.multiple:
            assert "was given" not in said
        else:
            assert said == f"{name} was given twice{values}; give it once"
        for other in option.secondary_opts:
            assert parsed(words, [name, other, name]) == (
                f"{name} was given 3 times ({name}, {other} and {name}); give it once"
            )


def test_what_looks_like_an_option_but_is_a_value_is_not_counted() -> None:
    assert parsed(("verify",), ["x.py", "--run", "--size", "--size", "small"]) == ""
    assert parsed(("verify",), ["--size", "small", "--", "--size"]) == ""


def kind_of(option: Any) -> str:
    """What reads its value: `_word_of`, `parsed_path`, `duration` ...; `flag` where it has none."""
    parser = option.type_descriptor.parameter_info.parser
    return "flag" if option.is_flag else str(getattr(parser, "__qualname__", "typer")).partition(".")[0]


SENSELESS = ("-1", "-0.5", "nan", "inf", "-inf", "1e400", "abc", "", "9" * 40, "9" * 5000, "1_000", "0x10")
REFUSES = {
    "_number_within": (SENSELESS, "must be "),
    "_word_of": (("", "no such word", "a" * 5000), "is not one of "),
    "parsed_path": (("",), "the path is empty; for the current directory give a dot."),
    "nonempty_text": (("",), "it is empty; give a value, or leave the option out."),
    "duration": (("-1", "0", "nan", "1e9", "8w", "400d", "9" * 400, ""), ""),
    "flag": (("3",), "does not take a value."),
}
"""Kind of option to values that it refuses, and what is said then."""


@pytest.mark.parametrize("kind", REFUSES)
def test_a_kind_of_option_refuses_what_makes_no_sense(kind: str) -> None:
    values, words_said = REFUSES[kind]
    options = [(words, option) for words, option in OPTIONS if kind_of(option) == kind]
    assert len(options) >= 2
    for words, option in options:
        for value in values:
            said = parsed(words, [f"{option_name(option)}={value}"])
            assert f"'{option_name(option)}'" in said and words_said in said, (words, value, said)


def test_numbers_and_paths_are_read_by_parsers_of_ours() -> None:
    """Typer's own would take a number without bounds, and an empty path for the current directory."""
    for words, command in COMMANDS.items():
        for parameter in command.params:
            kind = str(parameter.type_descriptor.annotation)
            if "int" in kind or "float" in kind or "Path" in kind:
                assert parameter.type_descriptor.parameter_info.parser, (words, parameter.name)


@pytest.mark.parametrize("value", ["", "x", "\x1b[2J", "\udcff", "a" * 5000, None])
def test_whatever_text_an_option_gets_the_answer_is_a_line(value: str | None) -> None:
    for words, option in OPTIONS:
        if not option.is_flag:
            said = parsed(words, [option_name(option)] if value is None else [option_name(option), value])
            assert "\n" not in said and len(said) < 6000, (words, option_name(option))
            assert not [phrase for phrase in FOREIGN if phrase in said], said


@pytest.mark.parametrize("field", VerifySettings.model_fields)
def test_no_bad_setting_is_told_in_words_of_a_library(field: str) -> None:
    from kernelproof import Verifier

    bad = [None, "", "x", -1, 0, 1.5, float("nan"), 10**400, [], {}, b"\xff", "\ud800", object()]
    for value in bad:
        try:
            Verifier(**{"backend": "cpp", field: value})
        except UsageError as error:
            assert not [phrase for phrase in FOREIGN if phrase in str(error)], (value, str(error))
            assert "\n" not in str(error)


MISTAKES = {
    "verfy": "No such command 'verfy'. Did you mean 'verify'?",
    "problems list level2": "too much: level2; kernelproof problems list --help says what it takes",
    "problems lst": "No such command 'lst'. Did you mean 'list'?",
    "verify x --sise small": "No such option: --sise (Possible options: --sanitize, --size, --suite)",
    "verify": "Missing argument 'file'.",
    "verify x --run": "Option '--run' requires an argument.",
    "generate relu --samples 0": "Invalid value for '--samples': must be 1 or more, not 0.",
    "verify x --run=": "Invalid value for '--run': it is empty; give a value, or leave the option out.",
    "leaderboard --workspace=": (
        "Invalid value for '--workspace': the path is empty; for the current directory give a dot."
    ),
    "verify nothing.py": "nothing.py cannot be read: No such file or directory",
    "generate relu --model gpt-5": (
        "no model 'gpt-5'; did you mean openai:gpt-5? or write openai:MODEL, replay:FILE or replay:demo; "
        "there are also anthropic:..., ollama:..., openrouter:..."
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
    "leaderboard --numerics fp23": (
        "Invalid value for '--numerics': 'fp23' is not one of 'fp32', 'tf32'; did you mean 'fp32'?"
    ),
}


@pytest.mark.few(10)
@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line(program: Program, line: str) -> None:
    done = program.run(*line.split(), code=2)
    assert (done.stdout, done.stderr) == ("", f"kernelproof: {MISTAKES[line]}\n")


@pytest.mark.parametrize("line", ["service gpus", "service callers list", "service callers revoke ana"])
def test_an_operator_is_told_how_a_missing_database_is_made(program: Program, line: str) -> None:
    said = program.run(*line.split(), code=2).stderr
    assert "there is no database" in said and "kernelproof service api makes it" in said


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
    command = [sys.executable, "-m", "kernelproof", "shwo"]
    done = subprocess.run(command, env=program.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "kernelproof: No such command 'shwo'. Did you mean 'show'?\n"
