"""What `generate --dry-run` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelproof.report.plain import say
from kernelproof.wording import counted

if TYPE_CHECKING:
    from kernelproof.runs.planning import Forecast


def say_forecasts(forecasts: Sequence[Forecast]) -> None:
    """A block of lines for the batch, and one for each model."""
    from kernelproof.report.verification import rules

    plan = forecasts[0].plan
    verify, run = plan.settings.verify, plan.settings
    say(f"problems   {len(plan.problems)}: {', '.join(problem.id for problem in plan.problems)}")
    say(f"strategy   {run.strategy_name}, at most {counted(run.turns, 'turn')} a sample")
    say(f"backend    {verify.backend}, size {verify.size}, template {run.template}")
    say(f"rules      {rules(verify)}")
    for found in forecasts:
        say("")
        _say(found)
    if len(forecasts) > 1:
        say("")
        costs = [found.cost_usd for found in forecasts]
        known = [cost for cost in costs if cost is not None]
        say(f"together   {counted(sum(f.questions for f in forecasts), 'question')}, {_money(known, costs)}")


def _say(found: Forecast) -> None:
    total = len(found.plan.problems) * found.plan.samples
    stored = f"{found.finished} of {counted(total, 'sample')} are finished"
    judged = f", {counted(found.to_judge, 'stored answer')} to judge" if found.to_judge else ""
    more = f", at most {found.follow_ups} more as answers fail" if found.follow_ups else ""
    say(f"model      {found.plan.settings.model}")
    say(f"stored     {stored}{judged}")
    say(f"questions  {found.questions}{more}")
    if found.too_long:
        length = f"the context of {found.plan.context_length:,} tokens (--context-length)"
        say(f"too long   {found.too_long} of them cannot fit {length}, and will not be sent")
    say(f"tokens     {_tokens(found)}")
    say(f"cost       {_money([found.cost_usd], [found.cost_usd])} for these questions")


def _tokens(found: Forecast) -> str:
    if not found.questions:
        return "none"
    if found.measured_on:
        on = f"by {counted(found.measured_on, 'stored answer')} of this model"
        return f"about {found.prompt_tokens:,} for prompts and {found.completion_tokens:,} for answers, {on}"
    unknown = "answers unknown until this model has answered once"
    return f"about {found.prompt_tokens:,} for prompts; {unknown}"


def _money(known: Sequence[float | None], costs: Sequence[float | None]) -> str:
    dollars = sum(cost for cost in known if cost is not None)
    if None not in costs:
        return f"about ${dollars:,.2f}"
    return f"unknown (at least ${dollars:,.2f})" if dollars else "unknown"


def forecast_json(forecasts: Sequence[Forecast]) -> str:
    """The same for machines."""
    rows = [
        {
            "model": found.plan.settings.model,
            "samples": len(found.plan.problems) * found.plan.samples,
            "finished": found.finished,
            "to_judge": found.to_judge,
            "questions": found.questions,
            "follow_ups": found.follow_ups,
            "too_long": found.too_long,
            "prompt_tokens": found.prompt_tokens,
            "completion_tokens": found.completion_tokens,
            "cost_usd": found.cost_usd,
        }
        for found in forecasts
    ]
    return json.dumps({"models": rows})
