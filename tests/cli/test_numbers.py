"""Numbers that make no sense are refused, by options and by a configuration, before anything is asked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_type_hints

import pytest

from kernelproof.errors import UsageError
from kernelproof.runs.config import BatchConfig, checked, read_config
from tests.cli.program import Program
from tests.cli.test_manners import parsed


@pytest.mark.parametrize("value", ["-1,1", "1", "1,2,3,4", "nan,1", "1,inf", "1e400,1", "a,b", ",", ""])
def test_no_sensible_price(value: str) -> None:
    assert parsed(("generate",), [f"--price={value}"]).startswith("Invalid value for '--price': ")


HINTS = get_type_hints(BatchConfig, include_extras=True)
NUMBERS = {
    name: option.bounds
    for name, hint in HINTS.items()
    for option in getattr(hint, "__metadata__", ())
    if option.bounds
}


def test_every_number_of_a_configuration_has_bounds() -> None:
    kinds = {name: str(field.type) for name, field in BatchConfig.__dataclass_fields__.items()}
    assert {name for name, kind in kinds.items() if re.search(r"\b(int|float)\b", kind)} == set(NUMBERS)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_configuration_refuses_a_number_that_makes_no_sense(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    for value in ("-1", "-0.5", "nan", "inf", "-inf", "1e400", '"abc"', "9" * 40, "true", "[1]", "{}"):
        path.write_text(f'model = "openai:m"\n\n{name} = {value}\n')
        with pytest.raises(UsageError) as refused:
            checked(read_config(path), path)
        said = str(refused.value)
        assert said.startswith(f"{path}:3: {name} ") and "must be " in said, (value, said)
    for fit in (NUMBERS[name].most, max(NUMBERS[name].least, 1)):
        path.write_text(f'model = "openai:m"\n{name} = {fit}\n')
        assert getattr(checked(read_config(path), path), name) == fit


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("params = {temperature = -1}", "temperature must be 0 or more, not -1"),
        ("params = {top_p = 1.5}", "top_p must be 1 or less, not 1.5"),
        ("params = {max_tokens = 0}", "max_tokens must be 1 or more, not 0"),
        ('params = {top_p = "much"}', "top_p must be a number, not 'much'"),
        ("params = {max_tokens = true}", "max_tokens must be a whole number, not True"),
        ("params = {own = [1, {deep = nan}]}", "own must be finite, and is not"),
        ("params = {own = 1979-05-27}", "own must be a value that JSON has"),
        ("temperature = 1\nparams = {temperature = 2}", "temperature is given twice"),
        ("price = {input = -1, output = 1}", "price.input must be 0 or more, not -1"),
        ("[[models]]\nmodel = 'm'\nsamples = 0", "samples must be 1 or more, not 0"),
    ],
)
def test_fields_of_the_request_and_prices_in_a_configuration(fields: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked(tomllib.loads(fields))
    assert said in str(refused.value)


USUAL = ("generate", "level1/1", "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1")
REFUSED: dict[tuple[str, ...], str] = {
    (
        "--param",
        "top_p=0.9",
        "--param",
        "top_p=0.8",
    ): "--param top_p was given twice (0.9 and 0.8); give it once",
    ("--param", "a=x", "--param", "a=x"): '--param a was given twice ("x" and "x"); give it once',
    ("--param", "temperature=-1"): "temperature must be 0 or more, not -1",
    ("--param", "own=NaN"): "own must be finite, and is not",
    ("--param", "own=1e400"): "own must be finite, and is not",
    ("--temperature", "1", "--param", "temperature=1"): "temperature is given twice",
    ("--model", "openai:m"): "the model openai:m is there twice; give each model once",
}


@pytest.mark.few(4)
@pytest.mark.parametrize("more", REFUSED, ids=" ".join)
def test_it_is_refused_before_anything_is_asked(program: Program, suite: Path, more: tuple[str, ...]) -> None:
    done = program.run(*USUAL, "--suite", suite, "--backend", "cpp", *more, code=2)
    assert REFUSED[more] in done.stderr and done.stderr.count("\n") == 1
    assert not (program.workspace / "db").exists()


def test_a_field_on_the_command_line_takes_the_place_of_an_option_in_the_file(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    config = tmp_path / "run.toml"
    config.write_text("temperature = 0.5\n[params]\nmax_completion_tokens = 7\n")
    more = ("--config", config, "--param", "temperature=1", "--max-tokens", "8", "--dry-run")
    program.run(*USUAL, "--suite", suite, "--backend", "cpp", *more)


def test_a_baseline_that_there_is_not_is_refused_in_a_configuration(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    config = tmp_path / "run.toml"
    config.write_text('[verify]\nbaseline = "compiled"\n')
    done = program.run(*USUAL, "--suite", suite, "--config", config, "--dry-run", code=2)
    assert "--baseline must be compile or max-autotune, not 'compiled'" in done.stderr


def test_a_column_is_given_once(program: Program, tmp_path: Path) -> None:
    columns = ("--column", "code=a", "--column", "code=b")
    done = program.run("problems", "import", tmp_path, "--to", tmp_path / "new", *columns, code=2)
    assert "--column code was given 2 times; give it once" in done.stderr


def test_a_level_that_a_suite_has_not_is_told(program: Program, suite: Path) -> None:
    done = program.run("problems", "list", "--level", "7", "--suite", suite, code=2)
    assert "has no problems of level 7; its levels are 1" in done.stderr


@pytest.mark.parametrize("text", ["0", "9" * 5000])
@pytest.mark.parametrize("command", ["show", "runs rejudge", "runs status", "runs retract", "reproduce"])
def test_a_number_of_nothing_stored(stored: Program, command: str, text: str) -> None:
    more = ("--reason", "x") if command == "runs retract" else ()
    done = stored.run(*command.split(), *more, "--", text, code=2)
    assert done.stderr.startswith("kernelproof: ") and done.stderr.count("\n") == 1
