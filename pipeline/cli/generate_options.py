"""The options of `generate` that are keys of a configuration, and how they meet a file and a stored run.

An option that is given wins over the file, and the file over the stored run of `--like`.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import Field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from kernelproof.choices import PRICE, TIME_S
from kernelproof.cli.completion import models, runs
from kernelproof.cli.declaring import Option, nonempty_text
from kernelproof.cli.options import VerifyOptions, explicit_options
from kernelproof.errors import UsageError
from kernelproof.runs.config import OF_A_MODEL, SENT_AS, BatchConfig, checked, read_config
from kernelproof.runs.config import Option as Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelproof.workspace import Workspace

GROUPS = {"provider": "provider_error", "infrastructure": "infrastructure_error"}
"""Short words for statuses."""
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _status(text: str) -> str:
    from kernelproof.types import Status

    words = (*GROUPS, *(status.value for status in Status))
    if text not in words:
        near = get_close_matches(text, words, 1)
        hint = f"did you mean {near[0]!r}?" if near else "give provider, infrastructure, or a status."
        raise typer.BadParameter(f"{text!r} is no status; {hint}")
    return text


AgainOption = Annotated[
    list[str] | None,
    Option(
        "Do only attempts again that ended so: provider, infrastructure, or a status. May be repeated.",
        metavar="<status>",
        parser=_status,
    ),
]


def duration(text: str) -> float:
    """Seconds, from `90`, `90s`, `30m`, `8h` or `2d`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip(), re.ASCII)
    if match is None or float(match[1]) == 0:
        raise typer.BadParameter(f"{text!r} is no duration; give seconds, or a number with m, h or d: 8h.")
    seconds = float(match[1]) * _UNITS[match[2]]
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


PARSERS = {"params": parameter, "price": price, "max_time": duration, "max_device_time": duration}
"""How keys stand on the command line that are neither text nor numbers there."""
OFFERED = {"model": models, "run": runs}


def config_options() -> list[inspect.Parameter]:
    """The options that are keys of a configuration, those of a model last; None where one is not given."""
    hints = get_type_hints(BatchConfig, include_extras=True)
    ordered = sorted(fields(BatchConfig), key=lambda each: each.name in OF_A_MODEL)
    declared = ((each, extra) for each in ordered for extra in getattr(hints[each.name], "__metadata__", ()))
    return [_parameter(key, hints[key.name].__origin__, option) for key, option in declared]


def _parameter(key: Field[Any], hint: Any, setting: Setting) -> inspect.Parameter:
    kind = get_args(hint)[0] if get_origin(hint) in (Union, UnionType) else hint
    sentence = setting.help + (f" [default: {key.default}]" if isinstance(key.default, int | str) else "")
    is_text = key.name in PARSERS or not (setting.bounds or kind is bool or get_origin(kind) is Literal)
    option = Option(
        sentence,
        setting.bounds,
        setting.names,
        setting.metavar or ("<text>" if is_text else None),
        parser=PARSERS.get(key.name, nonempty_text if is_text else None),
        offered=OFFERED.get(key.name),
        show_default=kind is not bool,
    )
    typed: Any = (
        list[Any] | None if get_origin(kind) in (tuple, dict) else bool | None if kind is bool else Any
    )
    annotation = Annotated[typed, option.info(kind, key.name, None)]
    return inspect.Parameter(key.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def keys_of(options: Mapping[str, Any]) -> dict[str, Any]:
    keys = {name: value for name, value in options.items() if value is not None and value != []}
    return keys | ({"params": _once(keys["params"])} if "params" in keys else {})


def _once(params: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of the request. Raises UsageError for one that is given twice."""
    by_name: dict[str, Any] = {}
    for name, value in params:
        if name in by_name:
            values = f"{json.dumps(by_name[name])} and {json.dumps(value)}"
            raise UsageError(f"--param {name} was given twice ({values}); give it once")
        by_name[name] = value
    return by_name


def configured(
    problems: Sequence[str] | None,
    command_keys: Mapping[str, Any],
    options: VerifyOptions,
    suite: Path | None,
    config: Path | None,
    like: str | None,
    place: Workspace,
    context: typer.Context,
) -> tuple[BatchConfig, VerifyOptions]:
    """The configuration that file, stored run and options make together. Raises UsageError."""
    keys: dict[str, Any] = _stored(like, place) if like is not None else {}
    if config is not None:
        file_keys = read_config(config)
        checked(file_keys, config)  # what is wrong with the file is said with its lines
        keys = _over(keys, file_keys)
    typed_keys = keys_of(command_keys)
    if problems:
        typed_keys["problems"] = list(problems)
    if suite is not None:
        typed_keys["suite"] = str(suite)
    if verify := explicit_options(options, context):
        typed_keys["verify"] = verify
    keys = _over(keys, typed_keys)
    if not keys.get("problems"):
        raise UsageError("no problems; give ids, names, level1, or all, or `problems` in the configuration")
    merged = checked(keys)
    # Resolved: --like must mean the same from another directory.
    if merged.suite is not None:
        merged = replace(merged, suite=str(Path(merged.suite).resolve()))
    return merged, _options(merged.verify)


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Keys of `above` win. Models that are named anew take the place of the others; verify adds up."""
    if "model" in above or "models" in above:
        below = {name: value for name, value in below.items() if name not in ("model", "models")}
    below = _without_rivals(below, above)
    merged = below | above
    for name in ("verify", "params"):
        if name in below and name in above and isinstance(below[name], dict):
            merged[name] = below[name] | above[name]
    per_model = (set(above) & OF_A_MODEL) - {"params"}
    if per_model and isinstance(merged.get("models"), (list, tuple)) and "models" not in above:
        # An option on the command line is for all models, also where the file says otherwise for one.
        merged["models"] = [
            {key: value for key, value in dict(model).items() if key not in per_model}
            for model in merged["models"]
        ]
    return merged


def _without_rivals(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """`below` without what `above` says in the other way: as an option, or as a field of the request."""
    params = {**below["params"]} if isinstance(below.get("params"), dict) else {}
    above_params = above.get("params") if isinstance(above.get("params"), dict) else {}
    left = {name: value for name, value in below.items() if SENT_AS.get(name) not in (above_params or {})}
    named = {sent for name, sent in SENT_AS.items() if name in above}
    return left | ({"params": {k: v for k, v in params.items() if k not in named}} if params else {})


def _stored(like: str, place: Workspace) -> dict[str, Any]:
    from kernelproof.db.store import open_store

    with open_store(place.database, only_read=True) as store:
        batches = store.batches.newest(like, most=1)
    if not batches:
        raise UsageError(
            f"no run {like!r} was made by generate here; kernelproof runs status lists what there is"
        )
    return dict(batches[0].config)


def _options(verify: dict[str, Any]) -> VerifyOptions:
    """The options of a verification from a configuration. Raises UsageError for a name that is none."""
    names = [field.name for field in fields(VerifyOptions)]
    for name in verify:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(names)}"
            raise UsageError(f"verify.{name}: there is no such option{hint}")
    return VerifyOptions(**verify)
