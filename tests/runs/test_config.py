"""A batch's configuration: from TOML with the line of a mistake, per model, and over it what is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.errors import UsageError
from kernelproof.runs.config import BatchConfig, checked, line_of, read_config

NIGHT = """
problems = ["level1", "level2/7"]
run = "night"
samples = 4
turns = 3
temperature = 0.7
concurrency = 32
max_cost = 20

[verify]
rigor = "standard"

[[models]]
model = "openai:large"
endpoint = "responses"
key_variable = "LARGE_KEY"
params = { top_p = 0.9 }
price = { input = 1.25, output = 10, cached = 0.125 }

[[models]]
model = "openai:small"
base_url = "http://localhost:8000/v1"
temperature = 0.2
samples = 8
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text)
    return path


def read(path: Path) -> BatchConfig:
    return checked(read_config(path), path)


def test_a_model_has_what_the_top_says_where_it_says_nothing_itself(tmp_path: Path) -> None:
    config = read(written(tmp_path, NIGHT))
    large, small = config.all_models
    assert (large.temperature, small.temperature) == (0.7, 0.2)
    assert (large.concurrency, small.concurrency) == (32, 32)
    assert (large.samples, small.samples) == (None, 8)
    assert large.sampling == {"temperature": 0.7, "top_p": 0.9}
    assert large.price is not None and large.price.of(1_000_000, 100_000, 500_000) == pytest.approx(1.6875)
    assert config.problems == ("level1", "level2/7") and config.verify == {"rigor": "standard"}


def test_a_single_word_needs_no_brackets() -> None:
    assert checked({"problems": "level1", "model": "openai:m"}).all_models[0].model == "openai:m"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("samples = 4\n", "samples = \n", "line 4, column 11: invalid value: samples ="),
        ("samples = 4\n", "samples = 0\n", ":4: samples must be 1 or more, not 0"),
        ("samples = 4\n", "smaples = 4\n", ":4: .*smaples.*did you mean samples"),
        ("concurrency = 32", 'concurrency = "many"', ":7: concurrency .*not 'many'"),
        (
            'endpoint = "responses"',
            'endpoint = "respones"',
            r":15: item 1 of models: endpoint must be 'chat' or 'responses', not 'respones'",
        ),
        (
            "temperature = 0.2",
            "temprature = 0.2",
            ":23: there is no temprature in item 2 of models; did you mean temperature",
        ),
        ("input = 1.25", "input = -1", ":18: item 1 of models: price: input must be 0 or more, not -1"),
        ('"openai:small"', '"openai:large"', "the model openai:large is there twice"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = written(tmp_path, NIGHT.replace(old, new, 1))
    with pytest.raises(UsageError, match=says) as caught:
        read(path)
    assert str(path) in str(caught.value)
    for phrase in ("pydantic", "Input should", "validation error", "Value error", "extra_forbidden"):
        assert phrase not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not a text file"):
        read_config(tmp_path / "bytes.toml")


def test_lines_are_found_in_tables_of_the_same_name() -> None:
    text = "a = 1\n[[m]]\nx = 1\n[[m]]\ny = 2\nx = 3\n[m.deep]\nz = 1\n"
    assert line_of(text, ("m", 1, "x")) == 6
    assert line_of(text, ("m", 0, "x")) == 3
    assert line_of(text, ("a",)) == 1
    assert line_of(text, ("b",)) is None
