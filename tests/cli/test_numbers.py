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


@pytest.mark.parametrize("text", ["0", "9" * 5000])
@pytest.mark.parametrize("command", ["show", "runs rejudge", "runs status", "runs retract", "reproduce"])
def test_a_number_of_nothing_stored(stored: Program, command: str, text: str) -> None:
    more = ("--reason", "x") if command == "runs retract" else ()
    done = stored.run(*command.split(), *more, "--", text, code=2)
    assert done.stderr.startswith("kernelproof: ") and done.stderr.count("\n") == 1
