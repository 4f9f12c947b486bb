"""Numbers that make no sense are refused, by options and by a configuration, before anything is asked."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from kernelproof import bounds
from kernelproof.bounds import Bounds
from kernelproof.cli.commands import option_name
from kernelproof.errors import UsageError
from kernelproof.runs.config import BatchConfig, checked, read_config
from kernelproof.types.explain import explain
from tests.cli.program import Program
from tests.cli.test_manners import COMMANDS, parsed

SENSELESS = ("-1", "-0.5", "nan", "inf", "-inf", "1e400", "abc", "", "9" * 40, "9" * 5000, "1_000", "0x10")
NUMBERS = ("<number>", "<days>")
OPTIONS = [
    pytest.param(words, option_name(option), id=" ".join((*words, option_name(option))))
    for words, command in COMMANDS.items()
    for option in command.params
    if option.metavar in NUMBERS
]


def test_every_number_is_declared_with_its_bounds() -> None:
    """An option whose type is a number is made by `number`, which is what gives it this metavar."""
    by_hand = {"max_time", "max_device_time"}  # 8h
    for words, command in COMMANDS.items():
        for option in command.params:
            kind = str(option.type_descriptor.annotation)
            if ("int" in kind or "float" in kind) and option.name not in by_hand:
                assert option.metavar in NUMBERS, (words, option.name)
    assert len(OPTIONS) > 20


@pytest.mark.parametrize(("words", "name"), OPTIONS)
def test_an_option_refuses_a_number_that_makes_no_sense(words: tuple[str, ...], name: str) -> None:
    for value in SENSELESS:
        said = parsed(words, [f"{name}={value}"])
        assert said.startswith(f"{name} must be "), (value, said)
        assert len(said) < 200


@pytest.mark.parametrize("name", ["--samples", "--concurrency", "--max-tokens", "--max-attempts", "--turns"])
def test_nothing_is_no_count(name: str) -> None:
    assert parsed(("generate",), [name, "0"]) == f"{name} must be 1 or more, not 0"


@pytest.mark.parametrize("name", ["--timeout", "--max-cost", "--seconds"])
def test_nothing_is_no_time_and_no_money(name: str) -> None:
    assert parsed(("generate",), [name, "0"]) == f"{name} must be more than 0, not 0"


@pytest.mark.parametrize("value", ["-1", "0", "nan", "inf", "1e9", "8w", "400d", "9" * 400, ""])
def test_no_sensible_time_to_stop(value: str) -> None:
    assert parsed(("generate",), [f"--max-time={value}"]).startswith("--max-time: ")


@pytest.mark.parametrize("value", ["-1,1", "1", "1,2,3,4", "nan,1", "1,inf", "1e400,1", "a,b", ",", ""])
def test_no_sensible_price(value: str) -> None:
    assert parsed(("generate",), [f"--price={value}"]).startswith("--price: ")


FIELDS = {
    "samples": bounds.SAMPLES,
    "turns": bounds.TURNS,
    "good_enough": bounds.ROOFLINE_SHARE,
    "concurrency": bounds.CONCURRENCY,
    "timeout": bounds.TIMEOUT_S,
    "retries": bounds.RETRIES,
    "temperature": bounds.TEMPERATURE,
    "max_tokens": bounds.ANSWER_TOKENS,
    "context_length": bounds.CONTEXT_TOKENS,
    "max_cost": bounds.DOLLARS,
    "max_tokens_total": bounds.ALL_TOKENS,
    "max_time": bounds.TIME_S,
    "max_device_time": bounds.TIME_S,
    "max_attempts": bounds.ATTEMPTS,
    "stop_after_errors": bounds.EQUAL_ERRORS,
}


def test_every_number_of_a_configuration_is_here() -> None:
    kinds = {name: str(field.annotation) for name, field in BatchConfig.model_fields.items()}
    assert {name for name, kind in kinds.items() if "int" in kind or "float" in kind} == set(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_a_configuration_refuses_a_number_that_makes_no_sense(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    for value in ("-1", "-0.5", "nan", "inf", "-inf", "1e400", '"abc"', "9" * 40, "true", "[1]", "{}"):
        path.write_text(f'model = "openai:m"\n\n{name} = {value}\n')
        with pytest.raises(UsageError) as refused:
            checked(read_config(path), path)
        said = str(refused.value)
        assert said.startswith(f"{path}:3: {name} ") and "must be " in said, (value, said)
    for fit in (FIELDS[name].most, max(FIELDS[name].least, 1)):
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
    ("--concurrency", "0"): "--concurrency must be 1 or more, not 0",
    ("--temperature", "-0.1"): "--temperature must be 0 or more, not -0.1",
    ("--samples", "1000000000"): "--samples must be 1000000 or less, not 1000000000",
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


@pytest.mark.few(8)
@pytest.mark.parametrize("text", ["0", "99999999999999999999999", "9" * 5000, "-1"])
@pytest.mark.parametrize("command", ["show", "rejudge", "status", "retract", "reproduce"])
def test_a_number_of_nothing_stored(stored: Program, command: str, text: str) -> None:
    more = ("--reason", "x") if command == "retract" else ()
    done = stored.run(command, *more, "--", text, code=2)
    assert done.stderr.startswith("kernelproof: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("bound", [Bounds(1, 20), Bounds(0, 2.5, whole=False, above=True)])
def test_the_words_are_those_of_records(bound: Bounds) -> None:
    """What an option says of a number, a configuration says too."""
    record: Any = TypeAdapter(Annotated[int if bound.whole else float, Field(**bound.field)])
    for value in (-1, 0, 0.5, 2, 21):
        try:
            record.validate_python(value)
            by_record = ""
        except ValidationError as error:
            by_record = explain(error, {"": "it"})
        try:
            bound.number(str(value))
            by_option = ""
        except ValueError as error:
            by_option = f"it {error}"
        assert by_option == by_record
