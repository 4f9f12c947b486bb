"""The configuration of a batch, from a TOML file, the command line, or a stored run: one record for all
three. Each key is declared once: its type, what it may be, its default, and the help of its option.

A key of the file is the name of the option, with `_` for `-`. Each table `[[models]]` is a model; what it
does not say is taken from the file's top. Imports pydantic only when keys are checked, so that `--help` is
fast.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from kernelproof.choices import (
    ALL_TOKENS,
    ANSWER_TOKENS,
    ATTEMPTS,
    CONCURRENCY,
    CONTEXT_TOKENS,
    DOLLARS,
    EQUAL_ERRORS,
    FIELDS,
    PRICE,
    RETRIES,
    ROOFLINE_SHARE,
    SAMPLES,
    TEMPERATURE,
    TIME_S,
    TIMEOUT_S,
    TURNS,
    Bounds,
)
from kernelproof.errors import UsageError
from kernelproof.regular_files import read_regular

if TYPE_CHECKING:
    from kernelproof.types import Response


CLOSED = {"extra": "forbid"}
"""For pydantic: a key that there is not is an error."""


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens."""

    __pydantic_config__ = CLOSED

    input: Annotated[float, PRICE]
    """Of the prompt."""
    output: Annotated[float, PRICE]
    """Of the answer, reasoning included."""
    cached: Annotated[float | None, PRICE] = None
    """Of that part of the prompt which the server had in its cache; None: as `input`."""

    def of(self, prompt: int, completion: int, cached: int = 0) -> float:
        """US dollars for so many tokens; `cached` are among those of the prompt."""
        kept = min(cached, prompt)
        cheaper = self.input if self.cached is None else self.cached
        return ((prompt - kept) * self.input + kept * cheaper + completion * self.output) / 1e6


def with_cost(response: Response, price: Price | None) -> Response:
    usage = response.usage
    if response.cost_usd is not None or price is None or usage is None:
        return response
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return response
    cost = price.of(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens or 0)
    return response.model_copy(update={"cost_usd": cost})


SENT_AS = {
    "temperature": "temperature",
    "max_tokens": "max_completion_tokens",
    "reasoning_effort": "reasoning_effort",
}
"""Options that are fields of the request, and what servers call them."""


@dataclass(frozen=True)
class Option:
    """Beside a key's type: the option that sets it. Text is never empty, and a number is within `bounds`."""

    help: str
    bounds: Bounds | None = None
    metavar: str | None = None
    names: tuple[str, ...] = ()
    """Where the option is not called as its key."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core.core_schema import no_info_after_validator_function

        if self.bounds is not None:
            return self.bounds.__get_pydantic_core_schema__(source, handler)
        return no_info_after_validator_function(_not_empty, handler(source))


def _not_empty(value: Any) -> Any:
    if value == "" or (isinstance(value, tuple) and "" in value):
        raise ValueError("must be text that is not empty")
    return value


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How a model is asked. None: as the file's top says, else the default."""

    __pydantic_config__ = CLOSED

    base_url: Annotated[str | None, Option("The server [default: the model's own, or OPENAI_BASE_URL].")] = (
        None
    )
    endpoint: Annotated[
        Literal["chat", "responses"] | None, Option("How the server is asked [default: chat].")
    ] = None
    key_variable: Annotated[
        str | None,
        Option(
            "Environment variable with the key [default: the server's, such as OPENAI_API_KEY].",
            metavar="<name>",
        ),
    ] = None
    stream: Annotated[bool | None, Option("Take answers as they come [default: stream].")] = None
    concurrency: Annotated[
        int | None, Option("Most questions at once [default: 8; with --batch 50000].", CONCURRENCY)
    ] = None
    timeout: Annotated[
        float | None, Option("Longest silence of a server, in seconds [default: 600].", TIMEOUT_S)
    ] = None
    retries: Annotated[int | None, Option("How often a question is sent again [default: 2].", RETRIES)] = None
    temperature: Annotated[float | None, Option("Sent only when given.", TEMPERATURE)] = None
    max_tokens: Annotated[int | None, Option("Sent as max_completion_tokens when given.", ANSWER_TOKENS)] = (
        None
    )
    reasoning_effort: Annotated[str | None, Option("Sent only when given.", metavar="<word>")] = None
    params: Annotated[
        dict[str, Any],
        Option("Any field of the request: top_p=0.9. May be repeated.", None, "<name=value>", ("--param",)),
    ] = field(default_factory=dict)
    context_length: Annotated[
        int | None, Option("Tokens of the model's context [default: what the server says].", CONTEXT_TOKENS)
    ] = None
    price: Annotated[
        Price | None,
        Option("Dollars for a million tokens, where the server says no cost.", metavar="<in,out>"),
    ] = None
    server_batch: Annotated[
        bool | None,
        Option(
            "Ask by the server's batch endpoint: within a day, mostly for half the price.",
            names=("--batch/--no-batch",),
        ),
    ] = None

    def __post_init__(self) -> None:
        """Raises ValueError for fields of the request that cannot be sent, or are given twice."""
        for name, value in self.params.items():
            _can_be_sent(name, value)
        for name, sent in SENT_AS.items():
            if getattr(self, name) is not None and sent in self.params:
                option = name.replace("_", "-")
                raise ValueError(f"{sent} is given twice: by --{option} and as a parameter; give it once")

    @property
    def sampling(self) -> dict[str, Any]:
        """What is sent with every question, by the names that servers know."""
        named = {sent: getattr(self, name) for name, sent in SENT_AS.items()}
        return {name: value for name, value in named.items() if value is not None} | self.params


def _can_be_sent(name: str, value: Any) -> None:
    try:
        if name in FIELDS:
            FIELDS[name].hold(value)
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        said = str(error) if str(error).startswith("must") else "must be finite, and is not"
        raise ValueError(f"params: {name} {said}") from None
    except TypeError:
        raise ValueError(
            f"params: {name} must be a value that JSON has: text, number, true, list or table"
        ) from None


OF_A_MODEL = frozenset(each.name for each in fields(ModelOptions))
"""Keys that may stand in a table of `[[models]]`."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig(ModelOptions):
    model: Annotated[str, Option("The model.")]
    """`openai:MODEL`, `replay:FILE` ..."""
    samples: Annotated[int | None, Option("Samples of each problem.", SAMPLES)] = None


@dataclass(frozen=True, kw_only=True)
class BatchConfig(ModelOptions):
    """All options of `kernelproof generate` apart from those of its display."""

    problems: tuple[str, ...] = ()
    suite: str | None = None
    models: tuple[ModelConfig, ...] = ()
    model: Annotated[
        tuple[str, ...],
        Option(
            "openai:MODEL, openrouter:MODEL, anthropic:MODEL, ollama:MODEL, replay:FILE, or replay:demo. "
            "May be repeated.",
            metavar="<model>",
        ),
    ] = ()
    """Short for `models` that say nothing else."""
    run: Annotated[str | None, Option("The run's name: another name is another run.")] = None
    samples: Annotated[int, Option("Samples of each problem.", SAMPLES)] = 1
    turns: Annotated[int, Option("Most turns of a sample; 1 is one shot.", TURNS)] = 1
    strategy: Annotated[
        str | None,
        Option(
            "sample: one question. repair: until correct. refine, beam, evolve, ideas: for speed "
            "[default: repair with --turns 2 or more].",
            metavar="<name>",
        ),
    ] = None
    good_enough: Annotated[
        float | None, Option("End a sample that reaches this share of its roofline: 0.9.", ROOFLINE_SHARE)
    ] = None
    race: Annotated[
        bool | None,
        Option(
            "Time attempts at rigor quick, and verify the best of a sample again at --rigor "
            "[default: race with refine, beam, evolve, ideas]."
        ),
    ] = None
    template: Annotated[
        str | None, Option("Prompt template: a name, or a directory [default: the backend's].")
    ] = None
    verify: dict[str, Any] = field(default_factory=dict)
    """Options of the verification: `backend`, `size`, `rigor` ..., as `kernelproof verify` has them."""
    max_cost: Annotated[float | None, Option("Stop asking when the runs took so many dollars.", DOLLARS)] = (
        None
    )
    max_tokens_total: Annotated[
        int | None, Option("Stop asking when the runs took so many tokens.", ALL_TOKENS)
    ] = None
    max_time: Annotated[
        float | None, Option("Stop asking after so long: 90s, 30m, 8h.", TIME_S, "<time>")
    ] = None
    """Seconds."""
    max_device_time: Annotated[
        float | None, Option("Stop asking when verifications held the GPU so long: 2h.", TIME_S, "<time>")
    ] = None
    """Seconds."""
    max_attempts: Annotated[
        int | None, Option("Stop asking when the runs have so many answers.", ATTEMPTS)
    ] = None
    divide: Annotated[
        Literal["order", "gain"],
        Option("Which sample asks next: in order, or where another question is expected to gain most."),
    ] = "order"
    stop_after_errors: Annotated[
        int, Option("Stop asking a model after so many equal errors.", EQUAL_ERRORS)
    ] = 10

    def __post_init__(self) -> None:
        """Raises ValueError for a model that is there twice, and as `ModelOptions` does."""
        super().__post_init__()
        names = [*self.model, *(each.model for each in self.models)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"the model {twice[0]} is there twice; give each model once")

    @property
    def all_models(self) -> tuple[ModelConfig, ...]:
        """Each model with all that is said of it, here and at the top."""
        top = {name: getattr(self, name) for name in OF_A_MODEL}
        named = (ModelConfig(model=name) for name in self.model)
        return tuple(_filled(each, top) for each in (*named, *self.models))

    def keys(self) -> dict[str, Any]:
        """The keys as JSON has them, without defaults: `checked` makes an equal configuration of them."""
        from pydantic import TypeAdapter

        keys: dict[str, Any] = TypeAdapter(BatchConfig).dump_python(self, mode="json", exclude_defaults=True)
        return keys


def _filled(model: ModelConfig, top: Mapping[str, Any]) -> ModelConfig:
    missing = {name: value for name, value in top.items() if getattr(model, name) is None}
    return replace(model, **{**missing, "params": {**top["params"], **model.params}})


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
        raise UsageError(f"the configuration {path} is no TOML: {_sentence(str(error), text)}") from None


def checked(keys: Mapping[str, Any], path: Path | None = None) -> BatchConfig:
    """The configuration that these keys make. Raises UsageError, with the line where there is a file."""
    from pydantic import TypeAdapter, ValidationError

    from kernelproof.types.record import explain

    lists = {name: [keys[name]] for name in ("problems", "model") if isinstance(keys.get(name), str)}
    try:
        return TypeAdapter(BatchConfig).validate_python({**keys, **lists})
    except ValidationError as error:
        said = explain(error, known=[each.name for each in fields(BatchConfig)])
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


def _sentence(message: str, text: str) -> str:
    """tomllib's message with the line in front: `line 3: Invalid value`."""
    place = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", message)
    words = re.sub(r"\s*\(at .*\)", "", message)
    words = words[:1].lower() + words[1:]
    if place is None or place[1] is None:
        return f"at its end: {words}"
    lines = text.splitlines()
    line = lines[int(place[1]) - 1].strip() if int(place[1]) <= len(lines) else ""
    return f"line {place[1]}, column {place[2]}: {words}: {line[:80]}"
