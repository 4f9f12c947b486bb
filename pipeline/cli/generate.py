"""`kernelproof generate`: ask models for kernels, verify every answer, keep every attempt."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.cli.asking import AgainOption, ask_options, configured
from kernelproof.cli.completion import problems as offered
from kernelproof.cli.completion import runs
from kernelproof.cli.declaring import Argument, Entries, Option
from kernelproof.cli.options import INTERRUPTED, StorageOptions, SuiteOption, VerifyOptions
from kernelproof.report.plain import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelproof.cli.batch_display import Form
    from kernelproof.runs.batch import Outcome, RunPlan, Terms
    from kernelproof.workspace import Workspace


@dataclass(frozen=True)
class ShowOptions:
    """How the work is shown."""

    plain: Annotated[bool, Option("A line for each attempt, no table.")] = False
    as_json: Annotated[bool, Option("A JSON object for each event.", names=("--json",))] = False
    dry_run: Annotated[bool, Option("Say what would be asked, ask nothing.")] = False

    @property
    def form(self) -> Form:
        """As the display names it."""
        return "json" if self.as_json else "plain" if self.plain else "live"


def generate(
    problems: Annotated[
        list[str] | None,
        Argument("Ids, names, `level1`, globs, or all.", parser=str, offered=offered, show_default=False),
    ] = None,
    *,
    context: typer.Context,
    asked: Annotated[dict[str, Any], Entries(ask_options())],
    options: VerifyOptions,
    suite: SuiteOption = None,
    storage: StorageOptions,
    config: Annotated[Path | None, Option("Take options from this TOML file.")] = None,
    like: Annotated[
        str | None, Option("Take options from a stored run.", metavar="<run>", offered=runs)
    ] = None,
    again: AgainOption = None,
    record: Annotated[Path | None, Option("Append the answers to this file, for replay.")] = None,
    show: ShowOptions,
) -> None:
    """Ask models for kernels and verify every answer. The same command again continues where it stopped."""
    from kernelproof.problems import open_suite
    from kernelproof.runs.planning import plans_of, terms_of

    place = storage.opened()
    resolved, verify = configured(problems, asked, options, suite, config, like, place, context)
    chosen = open_suite(Path(resolved.suite) if resolved.suite else None).select(list(resolved.problems))
    settings = verify.settings(chosen)
    plans = plans_of(resolved, chosen, settings, record=record, ask=not show.dry_run)
    terms = terms_of(resolved, place.generated, frozenset(_statuses(again)))
    if show.dry_run:
        _say_forecast(plans, place, show)
        return
    _end(_run(plans, terms, place, show.form))


def _statuses(again: Sequence[str] | None) -> list[Any]:
    from kernelproof.cli.asking import GROUPS
    from kernelproof.types import Status

    return [Status(GROUPS.get(word, word)) for word in again or ()]


def _say_forecast(plans: Sequence[RunPlan], place: Workspace, show: ShowOptions) -> None:
    from kernelproof.cli.forecast import forecast_json, say_forecasts
    from kernelproof.db.store import open_if_there
    from kernelproof.runs.planning import forecast

    with ExitStack() as stack:
        opened = open_if_there(place.database)
        store = stack.enter_context(opened) if opened else None
        found = [forecast(plan, store) for plan in plans]
    print(forecast_json(found)) if show.as_json else say_forecasts(found)


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
            return await run_batch(
                plans,
                store,
                engine,
                terms,
                on_event=display.on_event,
                progress=display.snapshot,
                unread=lambda: display.unread,
            )

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
