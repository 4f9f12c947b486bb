"""`kernelproof generate`: ask models for kernels, verify every answer, keep every attempt."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.cli.completion import problems as offered
from kernelproof.cli.completion import runs
from kernelproof.cli.declaring import Argument, Entries, Option
from kernelproof.cli.generate_options import AgainOption, config_options, configured
from kernelproof.cli.options import INTERRUPTED, StorageOptions, SuiteOption, VerifyOptions
from kernelproof.report.plain import json_line, say
from kernelproof.wording import counted

if TYPE_CHECKING:
    from kernelproof.cli.batch_display import Form
    from kernelproof.runs.batch import Outcome, RunPlan, Terms
    from kernelproof.runs.planning import Forecast
    from kernelproof.workspace import Workspace


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
    _end(_run(plans, terms, storage.create_workspace(), show.form))


def _statuses(again: Sequence[str] | None) -> list[Any]:
    from kernelproof.cli.generate_options import GROUPS
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


def _run(plans: Sequence[RunPlan], terms: Terms, place: Workspace, form: Form) -> Outcome:
    import anyio

    from kernelproof.cli.batch_display import BatchDisplay
    from kernelproof.db.store import open_store
    from kernelproof.runs.batch import run_batch
    from kernelproof.verifier.engine.engine import Engine, require_device

    verify = plans[0].settings.verify
    require_device(verify.backend)

    async def work() -> Outcome:
        async with AsyncExitStack() as stack:
            for plan in plans:
                stack.push_async_callback(plan.provider.aclose)
            return await run_batch(plans, store, engine, terms, **display.heard)

    sizes = [(p.settings.model, len(p.problems) * p.samples, p.settings.turns) for p in plans]
    with open_store(place.database) as store, Engine(unsafe=verify.unsafe, many=True) as engine:
        with BatchDisplay(sizes, form, lambda: engine.busy_share) as display:
            outcome = anyio.run(work)
        display.summary(outcome, place.database, plans[0].settings.name)
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
