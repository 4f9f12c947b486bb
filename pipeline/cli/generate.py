"""`kernelproof generate`: ask models for kernels, verify every answer, keep every attempt.

Its options are keys of a configuration. An option that is given wins over the file, and the file over the
stored run of `--like`.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import Field, dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from kernelproof.choices import PRICE, TIME_S
from kernelproof.cli.completion import models, runs
from kernelproof.cli.completion import problems as offered
from kernelproof.cli.declaring import Argument, Entries, Option, nonempty_text
from kernelproof.cli.options import (
    INTERRUPTED,
    StorageOptions,
    SuiteOption,
    VerifyOptions,
    explicit_options,
)
from kernelproof.errors import UsageError
from kernelproof.report.plain import json_line, say
from kernelproof.runs.config import OF_A_MODEL, SENT_AS, BatchConfig, checked, read_config
from kernelproof.runs.config import Option as Setting
from kernelproof.wording import counted

if TYPE_CHECKING:
    from kernelproof.cli.batch_display import Form
    from kernelproof.runs.batch import Outcome, RunPlan, Terms
    from kernelproof.runs.planning import Forecast
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


@dataclass(frozen=True)
class ShowOptions:
    plain: Annotated[bool, Option("A line for each attempt, no table.")] = False
    as_json: Annotated[bool, Option("A JSON object for each event.", names=("--json",))] = False
    dry_run: Annotated[bool, Option("Say what would be asked, ask nothing.")] = False

    @property
    def form(self) -> Form:
        return "json" if self.as_json else "plain" if self.plain else "live"


def generate(
    problems: Annotated[
        list[str] | None,
        Argument("Ids, names, `level1`, globs, or all.", parser=str, offered=offered, show_default=False),
    ] = None,
    *,
    context: typer.Context,
    keys: Annotated[dict[str, Any], Entries(config_options())],
    options: VerifyOptions,
    suite: SuiteOption = None,
    storage: StorageOptions,
    config: Annotated[Path | None, Option("Take options from this TOML file.")] = None,
    like: Annotated[
        str | None, Option("Take options from a stored run.", metavar="<run>", offered=runs)
    ] = None,
    again: AgainOption = None,
    record: Annotated[
        Path | None, Option("Append the answers to this file, for replay.", names=("--record", "-o"))
    ] = None,
    show: ShowOptions,
) -> None:
    """Ask models for kernels and verify every answer. The same command again continues where it stopped."""
    from kernelproof.problems import open_suite
    from kernelproof.runs.planning import plans_of, terms_of

    place = storage.open_workspace(may_be_missing=True)
    resolved, verify = configured(problems, keys, options, suite, config, like, place, context)
    chosen = open_suite(Path(resolved.suite) if resolved.suite else None).select(list(resolved.problems))
    settings = verify.settings(chosen)
    plans = plans_of(resolved, chosen, settings, record=record, ask=not show.dry_run)
    terms = terms_of(resolved, place.generated, frozenset(_statuses(again)))
    if show.dry_run:
        _say_forecast(plans, place, show)
        return
    _end(_run(plans, terms, storage, show.form))


def _statuses(again: Sequence[str] | None) -> list[Any]:
    from kernelproof.types import Status

    return [Status(GROUPS.get(word, word)) for word in again or ()]


def _say_forecast(plans: Sequence[RunPlan], place: Workspace, show: ShowOptions) -> None:
    from kernelproof.db.store import open_if_there
    from kernelproof.runs.planning import forecast

    with ExitStack() as stack:
        opened = open_if_there(place.database)
        store = stack.enter_context(opened) if opened else None
        forecasts = [forecast(plan, store) for plan in plans]
    print(forecast_json(forecasts)) if show.as_json else say_forecasts(forecasts)


def _run(plans: Sequence[RunPlan], terms: Terms, storage: StorageOptions, form: Form) -> Outcome:
    import anyio

    from kernelproof.cli.batch_display import BatchDisplay
    from kernelproof.db.store import open_store
    from kernelproof.runs.batch import run_batch
    from kernelproof.verifier.engine.engine import Engine, require_device

    database, verify = storage.create_workspace().database, plans[0].settings.verify
    require_device(verify.backend)

    async def work() -> Outcome:
        async with AsyncExitStack() as stack:
            for plan in plans:
                stack.push_async_callback(plan.provider.aclose)
            return await run_batch(plans, store, engine, terms, **display.heard)

    sizes = [(p.settings.model, len(p.problems) * p.samples, p.settings.turns) for p in plans]
    with open_store(database) as store, Engine(unsafe=verify.unsafe, many=True) as engine:
        with BatchDisplay(sizes, form, lambda: engine.busy_share) as display:
            outcome = anyio.run(work)
        display.summary(outcome, database, plans[0].settings.name, storage.option)
    return outcome


def _end(outcome: Outcome) -> None:
    """The exit code: 130 interrupted, 3 where a server or the machine left something undone, else 0."""
    from kernelproof.jobs import RETRIED

    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)
    for refusal in outcome.refusals:
        say(f"kernelproof: {refusal}", err=True)
    if outcome.refusals or any(status in RETRIED for status in outcome.statuses.values()):
        raise typer.Exit(3)


def say_forecasts(forecasts: Sequence[Forecast]) -> None:
    """A block of lines for the batch, and one for each model."""
    from kernelproof.report.verification import rules

    plan = forecasts[0].plan
    verify, run = plan.settings.verify, plan.settings
    say(f"problems   {len(plan.problems)}: {', '.join(problem.id for problem in plan.problems)}")
    say(f"strategy   {run.strategy_name}, at most {counted(run.turns, 'turn')} a sample")
    say(f"backend    {verify.backend}, size {verify.size}, template {run.template}")
    say(f"rules      {rules(verify)}")
    for forecast in forecasts:
        say("")
        _say(forecast)
    if len(forecasts) > 1:
        say("")
        costs = [forecast.cost_usd for forecast in forecasts]
        known = [cost for cost in costs if cost is not None]
        say(f"together   {counted(sum(f.questions for f in forecasts), 'question')}, {_money(known, costs)}")


def _say(forecast: Forecast) -> None:
    total = len(forecast.plan.problems) * forecast.plan.samples
    stored = f"{forecast.finished} of {counted(total, 'sample')} are finished"
    judged = f", {counted(forecast.to_judge, 'stored answer')} to judge" if forecast.to_judge else ""
    more = f", at most {forecast.follow_ups} more as answers fail" if forecast.follow_ups else ""
    say(f"model      {forecast.plan.settings.model}")
    say(f"stored     {stored}{judged}")
    say(f"questions  {forecast.questions}{more}")
    if forecast.too_long:
        length = f"the context of {forecast.plan.context_length:,} tokens (--context-length)"
        say(f"too long   {forecast.too_long} of them cannot fit {length}, and will not be sent")
    say(f"tokens     {_tokens(forecast)}")
    say(f"cost       {_money([forecast.cost_usd], [forecast.cost_usd])} for these questions")


def _tokens(forecast: Forecast) -> str:
    if not forecast.questions:
        return "none"
    if forecast.measured_on:
        on = f"by {counted(forecast.measured_on, 'stored answer')} of this model"
        tokens = f"{forecast.prompt_tokens:,} for prompts and {forecast.completion_tokens:,} for answers"
        return f"about {tokens}, {on}"
    unknown = "answers unknown until this model has answered once"
    return f"about {forecast.prompt_tokens:,} for prompts; {unknown}"


def _money(known: Sequence[float | None], costs: Sequence[float | None]) -> str:
    dollars = sum(cost for cost in known if cost is not None)
    if None not in costs:
        return f"about ${dollars:,.2f}"
    return f"unknown (at least ${dollars:,.2f})" if dollars else "unknown"


def forecast_json(forecasts: Sequence[Forecast]) -> str:
    same = (
        *("finished", "to_judge", "questions", "follow_ups", "too_long"),
        *("prompt_tokens", "completion_tokens", "cost_usd"),
    )
    rows = [
        {"model": f.plan.settings.model, "samples": len(f.plan.problems) * f.plan.samples}
        | {name: getattr(f, name) for name in same}
        for f in forecasts
    ]
    return json_line({"models": rows})
