"""What a batch is told, from a TOML file, the command line, or a stored run: one record for all three.

A key of the file is the name of the option, with `_` for `-`. Each table `[[models]]` is a model; what it
does not say is taken from the file's top.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from kernelproof.errors import UsageError
from kernelproof.runs.prices import Price
from kernelproof.types import FrozenRecord
from kernelproof.types.explain import explain


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


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
    concurrency: int | None = Field(default=None, ge=1)
    """Questions at the same time; with `server_batch`, the most that wait for batches."""
    timeout: float | None = Field(default=None, gt=0)
    """Longest silence of the server, in seconds."""
    retries: int | None = Field(default=None, ge=0)
    temperature: float | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    reasoning_effort: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    """Any other field of the request."""
    context_length: int | None = Field(default=None, ge=1)
    """Tokens that the model's context holds; None: what the server says."""
    price: Price | None = None
    """US dollars for a million tokens."""
    server_batch: bool | None = None
    """Ask by the server's batch endpoint."""

    @property
    def sampling(self) -> dict[str, Any]:
        """What is sent with every question, by the names that servers know."""
        named = {
            "temperature": self.temperature,
            "max_completion_tokens": self.max_tokens,
            "reasoning_effort": self.reasoning_effort,
        }
        return {name: value for name, value in named.items() if value is not None} | self.params


class ModelConfig(ModelOptions):
    """One model of a batch."""

    model: str = Field(min_length=1)
    """`openai:MODEL`, `replay:FILE` ..."""
    samples: int | None = Field(default=None, ge=1)


class BatchConfig(ModelOptions):
    """Everything that `kernelproof generate` is told, but how it shows its work."""

    problems: Words = ()
    suite: str | None = None
    models: tuple[ModelConfig, ...] = ()
    model: Words = ()
    """Short for `models` that say nothing else."""
    run: str | None = Field(default=None, min_length=1)
    """The run's name."""
    samples: int = Field(default=1, ge=1)
    turns: int = Field(default=1, ge=1, le=20)
    strategy: str | None = Field(default=None, min_length=1)
    template: str | None = Field(default=None, min_length=1)
    verify: dict[str, Any] = Field(default_factory=dict)
    """Options of the verification: `backend`, `size`, `rigor` ..., as `kernelproof verify` has them."""
    max_cost: float | None = Field(default=None, gt=0)
    max_tokens_total: int | None = Field(default=None, ge=1)
    max_time: float | None = Field(default=None, gt=0)
    """Seconds."""
    max_attempts: int | None = Field(default=None, ge=1)
    stop_after_errors: int = Field(default=10, ge=1)
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
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the configuration {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the configuration {path} is not a text file in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the configuration {path} is no TOML: {_said(str(error), path)}") from None


def checked(keys: Mapping[str, Any], path: Path | None = None) -> BatchConfig:
    """The configuration that these keys make. Raises UsageError, with the line where there is a file."""
    try:
        return BatchConfig.model_validate(dict(keys))
    except ValidationError as error:
        said = explain(error, known=BatchConfig.model_fields)
        if path is None:
            raise UsageError(said) from None
        place = tuple(error.errors()[0]["loc"])
        text = path.read_text(encoding="utf-8")
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


def _said(message: str, path: Path) -> str:
    """tomllib's message with the line in front: `line 3: Invalid value`."""
    place = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", message)
    words = re.sub(r"\s*\(at .*\)", "", message)
    words = words[:1].lower() + words[1:]
    if place is None or place[1] is None:
        return f"at its end: {words}"
    lines = path.read_text(encoding="utf-8").splitlines()
    text = lines[int(place[1]) - 1].strip() if int(place[1]) <= len(lines) else ""
    return f"line {place[1]}, column {place[2]}: {words}: {text[:80]}"
