"""Options that say what is asked, and how they meet a configuration file and a stored run.

An option that is given wins over the file, and the file over the stored run of `--like`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.bounds import (
    ALL_TOKENS,
    ANSWER_TOKENS,
    ATTEMPTS,
    CONCURRENCY,
    CONTEXT_TOKENS,
    DOLLARS,
    EQUAL_ERRORS,
    PRICE,
    RETRIES,
    ROOFLINE_SHARE,
    SAMPLES,
    TEMPERATURE,
    TIME_S,
    TIMEOUT_S,
    TURNS,
)
from kernelproof.cli.completion import models, runs
from kernelproof.cli.options import Sets, VerifyOptions, choice, given_options, nonempty_text, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelproof.runs.config import BatchConfig
    from kernelproof.workspace import Workspace

GROUPS = {"provider": "provider_error", "infrastructure": "infrastructure_error"}
"""Short words for statuses."""
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def again_option() -> Any:
    """The option `--again`."""

    def parsed(text: str) -> str:
        from kernelproof.types import Status

        words = (*GROUPS, *(status.value for status in Status))
        if text not in words:
            near = get_close_matches(text, words, 1)
            hint = f"did you mean {near[0]!r}?" if near else "give provider, infrastructure, or a status."
            raise typer.BadParameter(f"{text!r} is no status; {hint}")
        return text

    return typer.Option(
        parser=parsed,
        metavar="<status>",
        help="Do only attempts again that ended so: provider, infrastructure, or a status. May be repeated.",
    )


def duration(text: str) -> float:
    """Seconds, from `90`, `90s`, `30m`, `8h` or `2d`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip(), re.ASCII)
    if found is None or float(found[1]) == 0:
        raise typer.BadParameter(f"{text!r} is no duration; give seconds, or a number with m, h or d: 8h.")
    seconds = float(found[1]) * _UNITS[found[2]]
    if seconds > TIME_S.most:
        raise typer.BadParameter(f"{text!r} is longer than a year; leave the option out for no limit.")
    return seconds


def parameter(text: str) -> tuple[str, Any]:
    """A field of the request, from `NAME=VALUE`. The value is read as JSON where it is some."""
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][\w.\-]*", name):
        raise typer.BadParameter(f"{text!r} is no parameter; give NAME=VALUE: top_p=0.9.")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def price(text: str) -> dict[str, float]:
    """US dollars for a million tokens, from `IN,OUT` or `IN,OUT,CACHED`."""
    try:
        numbers = [PRICE.number(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3):
        raise typer.BadParameter(
            f"{text!r} is no price; give dollars for a million tokens: IN,OUT or IN,OUT,CACHED."
        )
    return dict(zip(("input", "output", "cached"), numbers, strict=False))


@dataclass(frozen=True)
class AskOptions:
    """The options of `generate` that say what is asked. None: not given."""

    model: Annotated[
        list[str] | None,
        typer.Option(
            parser=nonempty_text,
            autocompletion=models,
            metavar="<model>",
            help="openai:MODEL, replay:FILE, or replay:demo. May be repeated.",
        ),
    ] = None
    samples: Annotated[int | None, number(SAMPLES, "Samples of each problem.", show_default="1")] = None
    turns: Annotated[
        int | None, number(TURNS, "Most turns of a sample; 1 is one shot.", show_default="1")
    ] = None
    strategy: Annotated[
        str | None,
        typer.Option(
            parser=nonempty_text,
            metavar="<name>",
            help="sample: one question. repair: until correct. refine, beam, evolve, ideas: for speed "
            "[default: repair with --turns 2 or more].",
        ),
    ] = None
    good_enough: Annotated[
        float | None,
        number(ROOFLINE_SHARE, "End a sample that reaches this share of its roofline: 0.9."),
    ] = None
    race: Annotated[
        bool | None,
        typer.Option(
            "--race/--no-race",
            help="Time attempts at rigor quick, and verify the best of a sample again at --rigor "
            "[default: race with refine, beam, evolve, ideas].",
            show_default=False,
        ),
    ] = None
    template: Annotated[
        str | None,
        typer.Option(help="Prompt template: a name, or a directory.", show_default="the backend's"),
    ] = None
    run: Annotated[
        str | None,
        Sets("name"),
        typer.Option(
            parser=nonempty_text, autocompletion=runs, help="The run's name: another name is another run."
        ),
    ] = None
    base_url: Annotated[str | None, typer.Option(help="The server [default: OPENAI_BASE_URL].")] = None
    endpoint: Annotated[
        str | None, choice(("chat", "responses"), "How the server is asked [default: chat].")
    ] = None
    key_variable: Annotated[
        str | None,
        typer.Option(
            parser=nonempty_text,
            metavar="<name>",
            help="Environment variable with the key [default: OPENAI_API_KEY].",
        ),
    ] = None
    stream: Annotated[
        bool | None, typer.Option(help="Take answers as they come [default: stream].", show_default=False)
    ] = None
    server_batch: Annotated[
        bool | None,
        typer.Option(
            "--batch/--no-batch",
            help="Ask by the server's batch endpoint: within a day, mostly for half the price.",
            show_default=False,
        ),
    ] = None
    concurrency: Annotated[
        int | None,
        number(CONCURRENCY, "Most questions at a server at once.", show_default="8; with --batch 50000"),
    ] = None
    timeout: Annotated[
        float | None, number(TIMEOUT_S, "Longest silence of a server, in seconds.", show_default="600")
    ] = None
    retries: Annotated[
        int | None, number(RETRIES, "How often a question is sent again.", show_default="2")
    ] = None
    context_length: Annotated[
        int | None,
        number(CONTEXT_TOKENS, "Tokens of the model's context [default: what the server says]."),
    ] = None
    temperature: Annotated[float | None, Sets("sampling"), number(TEMPERATURE, "Sent only when given.")] = (
        None
    )
    max_tokens: Annotated[
        int | None,
        Sets("sampling"),
        number(ANSWER_TOKENS, "Sent as max_completion_tokens when given."),
    ] = None
    reasoning_effort: Annotated[
        str | None,
        Sets("sampling"),
        typer.Option(parser=nonempty_text, metavar="<word>", help="Sent only when given."),
    ] = None
    param: Annotated[
        list[Any] | None,
        Sets("sampling"),
        typer.Option(
            parser=parameter,
            metavar="<name=value>",
            help="Any field of the request: top_p=0.9. May be repeated.",
        ),
    ] = None
    price: Annotated[
        Any,
        typer.Option(
            parser=price,
            metavar="<in,out>",
            help="Dollars for a million tokens, where the server says no cost.",
        ),
    ] = None
    max_cost: Annotated[float | None, number(DOLLARS, "Stop asking when the runs took so many dollars.")] = (
        None
    )
    max_tokens_total: Annotated[
        int | None, number(ALL_TOKENS, "Stop asking when the runs took so many tokens.")
    ] = None
    max_time: Annotated[
        float | None,
        typer.Option(parser=duration, metavar="<time>", help="Stop asking after so long: 90s, 30m, 8h."),
    ] = None
    max_device_time: Annotated[
        float | None,
        typer.Option(
            parser=duration, metavar="<time>", help="Stop asking when verifications held the GPU so long: 2h."
        ),
    ] = None
    max_attempts: Annotated[
        int | None, number(ATTEMPTS, "Stop asking when the runs have so many answers.")
    ] = None
    divide: Annotated[
        str | None,
        choice(
            ("order", "gain"),
            "Which sample asks next: in order, or where another question is expected to gain most "
            "[default: order].",
        ),
    ] = None
    stop_after_errors: Annotated[
        int | None,
        number(EQUAL_ERRORS, "Stop asking a model after so many equal errors.", show_default="10"),
    ] = None

    def keys(self) -> dict[str, Any]:
        """The options that were given, as the keys of a configuration."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        keys = {name: value for name, value in given.items() if value is not None and value != []}
        if "param" in keys:
            keys["params"] = _once(keys.pop("param"))
        return keys


def _once(params: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of the request. Raises UsageError for one that is given twice."""
    from kernelproof.errors import UsageError

    found: dict[str, Any] = {}
    for name, value in params:
        if name in found:
            values = f"{json.dumps(found[name])} and {json.dumps(value)}"
            raise UsageError(f"--param {name} was given twice ({values}); give it once")
        found[name] = value
    return found


def configured(
    problems: Sequence[str] | None,
    asked: AskOptions,
    options: VerifyOptions,
    suite: Path | None,
    config: Path | None,
    like: str | None,
    place: Workspace,
    context: typer.Context,
) -> tuple[BatchConfig, VerifyOptions]:
    """The configuration that file, stored run and options make together. Raises UsageError."""
    from kernelproof.errors import UsageError
    from kernelproof.runs.config import checked, read_config

    keys: dict[str, Any] = _stored(like, place) if like is not None else {}
    if config is not None:
        told = read_config(config)
        checked(told, config)  # what is wrong with the file is said with its lines
        keys = _over(keys, told)
    given = asked.keys()
    if problems:
        given["problems"] = list(problems)
    if suite is not None:
        given["suite"] = str(suite)
    if verify := given_options(options, context):
        given["verify"] = verify
    keys = _over(keys, given)
    if not keys.get("problems"):
        raise UsageError("no problems; give ids, names, level1, or all, or `problems` in the configuration")
    found = checked(keys)
    # Resolved: --like must mean the same from another directory.
    if found.suite is not None:
        found = found.model_copy(update={"suite": str(Path(found.suite).resolve())})
    return found, _options(found.verify)


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Keys of `above` win. Models that are named anew take the place of the others; verify adds up."""
    if "model" in above or "models" in above:
        below = {name: value for name, value in below.items() if name not in ("model", "models")}
    below = _without_rivals(below, above)
    merged = below | above
    for name in ("verify", "params"):
        if name in below and name in above and isinstance(below[name], dict):
            merged[name] = below[name] | above[name]
    per_model = set(above) & _OF_A_MODEL
    if per_model and isinstance(merged.get("models"), (list, tuple)) and "models" not in above:
        # An option on the command line is for all models, also where the file says otherwise for one.
        merged["models"] = [
            {key: value for key, value in dict(model).items() if key not in per_model}
            for model in merged["models"]
        ]
    return merged


def _without_rivals(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """`below` without what `above` says in the other way: as an option, or as a field of the request."""
    from kernelproof.runs.config import SENT_AS

    params = {**below["params"]} if isinstance(below.get("params"), dict) else {}
    said = above.get("params") if isinstance(above.get("params"), dict) else {}
    left = {name: value for name, value in below.items() if SENT_AS.get(name) not in (said or {})}
    taken = {sent for name, sent in SENT_AS.items() if name in above}
    return left | ({"params": {k: v for k, v in params.items() if k not in taken}} if params else {})


_OF_A_MODEL = {
    *("base_url", "endpoint", "key_variable", "stream", "concurrency", "timeout", "retries", "temperature"),
    *("max_tokens", "reasoning_effort", "price", "context_length", "server_batch"),
}


def _stored(like: str, place: Workspace) -> dict[str, Any]:
    """The configuration of the newest batch of a run."""
    from kernelproof.db.store import open_store
    from kernelproof.errors import UsageError

    with open_store(place.database, only_read=True) as store:
        found = store.batches.newest(like, most=1)
    if not found:
        raise UsageError(f"no run {like!r} was made by generate here; kernelproof status lists what there is")
    return dict(found[0].config)


def _options(verify: dict[str, Any]) -> VerifyOptions:
    """The options of a verification from a configuration. Raises UsageError for a name that is none."""
    from difflib import get_close_matches

    from kernelproof.errors import UsageError

    names = [field.name for field in fields(VerifyOptions)]
    for name in verify:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(names)}"
            raise UsageError(f"verify.{name}: there is no such option{hint}")
    return VerifyOptions(**verify)
