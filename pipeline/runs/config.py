"""The configuration of a batch, from a TOML file, the command line, or a stored run: one record for all
three.

A key of the file is the name of the option, with `_` for `-`. Each table `[[models]]` is a model; what it
does not say is taken from the file's top.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from kernelproof.bounds import (
    ALL_TOKENS,
    ANSWER_TOKENS,
    ATTEMPTS,
    CONCURRENCY,
    CONTEXT_TOKENS,
    DOLLARS,
    EQUAL_ERRORS,
    FIELDS,
    RETRIES,
    ROOFLINE_SHARE,
    SAMPLES,
    TEMPERATURE,
    TIME_S,
    TIMEOUT_S,
    TURNS,
)
from kernelproof.errors import UsageError
from kernelproof.regular_files import read_regular
from kernelproof.runs.prices import Price
from kernelproof.types import FrozenRecord
from kernelproof.types.explain import explain


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth)]
Real = Annotated[float, BeforeValidator(_no_truth)]
SENT_AS = {
    "temperature": "temperature",
    "max_tokens": "max_completion_tokens",
    "reasoning_effort": "reasoning_effort",
}
"""Options that are fields of the request, and what servers call them."""

Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_as_list)]
"""Several words; a single one may stand without brackets."""


class ModelOptions(FrozenRecord):
    """How a model is asked. None: as the file's top says, else the default."""

    base_url: str | None = Field(default=None, min_length=1)
    """The server's address; None: `OPENAI_BASE_URL`, else OpenAI's."""
    endpoint: Literal["chat", "responses"] | None = None
    key_variable: str | None = Field(default=None, min_length=1)
    """The environment variable with the key."""
    stream: bool | None = None
    concurrency: Annotated[Whole | None, Field(**CONCURRENCY.field)] = None
    """Questions at the same time; with `server_batch`, the most that wait for batches."""
    timeout: Annotated[Real | None, Field(**TIMEOUT_S.field)] = None
    """Longest silence of the server, in seconds."""
    retries: Annotated[Whole | None, Field(**RETRIES.field)] = None
    temperature: Annotated[Real | None, Field(**TEMPERATURE.field)] = None
    max_tokens: Annotated[Whole | None, Field(**ANSWER_TOKENS.field)] = None
    reasoning_effort: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    """Any other field of the request."""
    context_length: Annotated[Whole | None, Field(**CONTEXT_TOKENS.field)] = None
    """Tokens that the model's context holds; None: what the server says."""
    price: Price | None = None
    """US dollars for a million tokens."""
    server_batch: bool | None = None
    """Ask by the server's batch endpoint."""

    @field_validator("params")
    @classmethod
    def _can_be_sent(cls, params: dict[str, Any]) -> dict[str, Any]:
        for name, value in params.items():
            try:
                if name in FIELDS:
                    FIELDS[name].hold(value)
                json.dumps(value, allow_nan=False)
            except ValueError as error:
                said = str(error) if str(error).startswith("must") else "must be finite, and is not"
                raise ValueError(f"{name} {said}") from None
            except TypeError:
                raise ValueError(
                    f"{name} must be a value that JSON has: text, number, true, list or table"
                ) from None
        return params

    @model_validator(mode="after")
    def _said_once(self) -> Self:
        for name, sent in SENT_AS.items():
            if getattr(self, name) is not None and sent in self.params:
                option = name.replace("_", "-")
                raise ValueError(f"{sent} is given twice: by --{option} and as a parameter; give it once")
        return self

    @property
    def sampling(self) -> dict[str, Any]:
        """What is sent with every question, by the names that servers know."""
        named = {sent: getattr(self, name) for name, sent in SENT_AS.items()}
        return {name: value for name, value in named.items() if value is not None} | self.params


class ModelConfig(ModelOptions):
    """One model of a batch."""

    model: str = Field(min_length=1)
    """`openai:MODEL`, `replay:FILE` ..."""
    samples: Annotated[Whole | None, Field(**SAMPLES.field)] = None


class BatchConfig(ModelOptions):
    """All options of `kernelproof generate` apart from those of its display."""

    problems: Words = ()
    suite: str | None = None
    models: tuple[ModelConfig, ...] = ()
    model: Words = ()
    """Short for `models` that say nothing else."""
    run: str | None = Field(default=None, min_length=1)
    """The run's name."""
    samples: Annotated[Whole, Field(**SAMPLES.field)] = 1
    turns: Annotated[Whole, Field(**TURNS.field)] = 1
    strategy: str | None = Field(default=None, min_length=1)
    good_enough: Annotated[Real | None, Field(**ROOFLINE_SHARE.field)] = None
    """A share of the roofline that ends a sample."""
    race: bool | None = None
    """Screen the attempts of a search, and verify the best once more. None: as the strategy has it."""
    template: str | None = Field(default=None, min_length=1)
    verify: dict[str, Any] = Field(default_factory=dict)
    """Options of the verification: `backend`, `size`, `rigor` ..., as `kernelproof verify` has them."""
    max_cost: Annotated[Real | None, Field(**DOLLARS.field)] = None
    max_tokens_total: Annotated[Whole | None, Field(**ALL_TOKENS.field)] = None
    max_time: Annotated[Real | None, Field(**TIME_S.field)] = None
    """Seconds."""
    max_device_time: Annotated[Real | None, Field(**TIME_S.field)] = None
    """Seconds in which verifications hold the device."""
    max_attempts: Annotated[Whole | None, Field(**ATTEMPTS.field)] = None
    divide: Literal["order", "gain"] = "order"
    """How questions are divided over samples: in their order, or by what another one is expected to gain."""
    stop_after_errors: Annotated[Whole, Field(**EQUAL_ERRORS.field)] = 10
    """Equal errors of a model in a row that end its questions."""

    @model_validator(mode="after")
    def _models_once(self) -> BatchConfig:
        names = [*self.model, *(each.model for each in self.models)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"the model {twice[0]} is there twice; give each model once")
        return self

    @property
    def all_models(self) -> tuple[ModelConfig, ...]:
        """Each model with all that is said of it, here and at the top."""
        top = {name: getattr(self, name) for name in ModelOptions.model_fields}
        named = (ModelConfig(model=name) for name in self.model)
        return tuple(_filled(each, top) for each in (*named, *self.models))


def _filled(model: ModelConfig, top: Mapping[str, Any]) -> ModelConfig:
    missing = {name: value for name, value in top.items() if getattr(model, name) is None}
    return model.model_copy(update={**missing, "params": {**top["params"], **model.params}})


def read_config(path: Path) -> dict[str, Any]:
    """The keys of a TOML file. Raises UsageError with the file's line for what is no TOML."""
    try:
        text = read_regular(path).decode("utf-8")
        return tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"the configuration {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the configuration {path} is not a text file in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the configuration {path} is no TOML: {_said(str(error), text)}") from None


def checked(keys: Mapping[str, Any], path: Path | None = None) -> BatchConfig:
    """The configuration that these keys make. Raises UsageError, with the line where there is a file."""
    try:
        return BatchConfig.model_validate(dict(keys))
    except ValidationError as error:
        said = explain(error, known=BatchConfig.model_fields)
        if path is None:
            raise UsageError(said) from None
        place = tuple(error.errors()[0]["loc"])
        text = read_regular(path).decode("utf-8")
        # A value inside of a value has no line of its own: then the line of what holds it.
        above = (place[:end] for end in range(len(place), 0, -1))
        line = next((line for each in above if (line := line_of(text, each)) is not None), None)
        raise UsageError(f"{path}:{line}: {said}" if line else f"{path}: {said}") from None


def line_of(text: str, place: tuple[int | str, ...]) -> int | None:
    """The line on which a key of a TOML file stands, from 1: `("models", 1, "timeout")`; None if not found.

    Looks at tables and keys line by line, which is enough for a message.
    """
    tables = [part for part in place[:-1] if isinstance(part, str)]
    number = next((part for part in place if isinstance(part, int)), 0)
    key = next((part for part in reversed(place) if isinstance(part, str)), "")
    found, table, seen = None, "", -1
    for line, content in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+\s*([\w.\-\" ]+?)\s*\]+", content):
            table = header[1].replace('"', "").replace(" ", "")
            seen += table == (tables[0] if tables else None)
            if table.split(".")[0] == key and not tables:
                found = found or line
            continue
        inside = not table if not tables else table.split(".")[0] == tables[0] and seen in (number, -1)
        if inside and re.match(rf'\s*"?{re.escape(key)}"?\s*=', content):
            return line
    return found


def _said(message: str, text: str) -> str:
    """tomllib's message with the line in front: `line 3: Invalid value`."""
    place = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", message)
    words = re.sub(r"\s*\(at .*\)", "", message)
    words = words[:1].lower() + words[1:]
    if place is None or place[1] is None:
        return f"at its end: {words}"
    lines = text.splitlines()
    line = lines[int(place[1]) - 1].strip() if int(place[1]) <= len(lines) else ""
    return f"line {place[1]}, column {place[2]}: {words}: {line[:80]}"
