"""Composes prompts: the first question about a problem, the repair question after an answer, and plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelproof.backends import backend as plug
from kernelproof.errors import UsageError
from kernelproof.extraction import without_thinking
from kernelproof.prompting.evidence import Failure, KnownPlan, Shown, Tried, trim_log, trim_text
from kernelproof.prompting.templates import (
    Template,
    checked_backend,
    checked_for_plans,
    default_template,
    example,
    open_template,
)
from kernelproof.types import CheckOutcome, Environment, Plan, Problem, Prompt, Response, Severity
from kernelproof.types.exchange import prompt_sha256
from kernelproof.wording import encodable

MAX_LOG = 6_000
MAX_DETAILS = 4_000
MAX_ANSWER = 60_000
MAX_ERRORS = 12
MAX_SHOWN = 40_000
"""Characters of all programs together that are shown beside the parent."""
MAX_TRIED = 8
MAX_KNOWN = 12
"""Earlier plans that a question for new ones names."""
MAX_KERNELS = 8
NO_ANSWER = "[This answer held no text outside the thinking.]"


def first_prompt(
    problem: Problem,
    *,
    backend: str,
    size: str = "full",
    template: str | None = None,
    hardware: Environment | None = None,
    reference_ms: float | None = None,
    target: float | None = None,
    profile: str | None = None,
    numerics: str = "fp32",
    purity: str = "any",
) -> Prompt:
    """The first question about `problem`.

    `template` is a packaged template's name or the path of a folder; None: the backend's. `hardware`,
    `reference_ms` (milliseconds of one call of the reference), `target` (a speedup) and `profile` (text) each
    add a section; they are for Python programs (docs/reference/prompts.md), runs leave them out.
    `numerics` and `purity` are the rules that the answer will be judged by.
    Raises UsageError for an unknown backend, size preset or template, and for a mistake in a template.
    """
    chosen = open_template(template or default_template(backend))
    variables = _common(problem, backend, size) | {
        "hardware": hardware,
        "reference_ms": reference_ms,
        "target": target,
        "profile": profile,
        "numerics": numerics,
        "purity": purity,
    }
    answer = example(backend)
    variables |= {"example_model": answer["model.py"], "example_answer": answer[f"{backend}.py"]}
    return _prompt(
        chosen,
        backend,
        system=chosen.render("system.j2", variables),
        user=chosen.render("user.j2", variables),
    )


def repair_prompt(
    problem: Problem,
    *,
    backend: str,
    size: str = "full",
    template: str | None = None,
    previous: Prompt,
    response: Response,
    failure: Failure,
    shown: Sequence[Shown] = (),
    tried: Sequence[Tried] = (),
) -> Prompt:
    """The question of the next turn: the conversation so far, and what `response` to `previous` came to.

    The response goes into the history without its thinking. With a failure of status `correct` the template
    asks for one idea to be faster. `shown` are other programs, `tried` earlier attempts to go on from this
    response; the newest are shown. Raises UsageError as `first_prompt` does.
    """
    chosen = open_template(template or default_template(backend))
    return _prompt(
        chosen,
        backend,
        system=previous.system,
        user=_repair(chosen, problem, backend, size, _evidence(failure, shown, tried)),
        history=_with_answer(previous, response),
    )


def repair_text(
    problem: Problem, *, backend: str, size: str = "full", template: str, failure: Failure
) -> str:
    """The words of `repair_prompt` alone, which do not depend on the conversation. Raises UsageError."""
    text = _repair(open_template(template), problem, backend, size, _evidence(failure, (), ()))
    return encodable(text)


def _repair(chosen: Template, problem: Problem, backend: str, size: str, evidence: dict[str, Any]) -> str:
    return chosen.render("repair.j2", _common(problem, backend, size) | evidence)


def plans_prompt(
    problem: Problem,
    *,
    backend: str,
    size: str = "full",
    template: str,
    first: Prompt,
    base: tuple[Response, Failure] | None = None,
    count: int,
    known: Sequence[KnownPlan] = (),
) -> Prompt:
    """The question for `count` plans in prose.

    They are to make the program of `base` faster, an answer and what it came to; or without one to solve the
    problem. `first` is the problem's first question, `known` are earlier plans. Raises UsageError as
    `first_prompt` does, and for a template without plans.
    """
    variables = {"count": count, "known": known[-MAX_KNOWN:]}
    return _about_plans("plans.j2", problem, backend, size, template, first, base, variables)


def plan_prompt(
    problem: Problem,
    *,
    backend: str,
    size: str = "full",
    template: str,
    first: Prompt,
    base: tuple[Response, Failure] | None = None,
    plan: Plan,
    tried: Sequence[Tried] = (),
) -> Prompt:
    """The question for a program that carries out `plan`, on the program of `base` or from nothing.

    `tried` are earlier programs of the same plan. Raises UsageError as `plans_prompt` does.
    """
    variables = {"plan": plan, "tried": tried[-MAX_TRIED:]}
    return _about_plans("plan.j2", problem, backend, size, template, first, base, variables)


def _about_plans(
    file: str,
    problem: Problem,
    backend: str,
    size: str,
    template: str,
    first: Prompt,
    base: tuple[Response, Failure] | None,
    variables: dict[str, Any],
) -> Prompt:
    chosen = checked_for_plans(open_template(template))
    told: dict[str, Any] = {"failure": None, "question": first.user}
    history = first.history
    if base is not None:
        told = _evidence(base[1], (), ()) | {"question": None}
        history = _with_answer(first, base[0])
    user = chosen.render(file, _common(problem, backend, size) | told | variables)
    return _prompt(chosen, backend, system=first.system, user=user, history=history)


def _evidence(failure: Failure, shown: Sequence[Shown], tried: Sequence[Tried]) -> dict[str, Any]:
    """The template variables that show the result of an answer."""
    return {
        "failure": failure,
        "failed_checks": [check for check in failure.checks if check.outcome is CheckOutcome.FAIL],
        "findings": [finding for finding in failure.findings if finding.severity is not Severity.NOTE],
        "errors": failure.errors[:MAX_ERRORS],
        "errors_left_out": len(failure.errors[MAX_ERRORS:]),
        "build_log": trim_log(failure.build_log, MAX_LOG),
        "details": trim_text(failure.details.strip(), MAX_DETAILS),
        "launches": failure.kernels.longest_first[:MAX_KERNELS] if failure.kernels else [],
        "bottleneck": failure.analysis.bottleneck if failure.analysis else None,
        "kernel_facts": failure.analysis.kernels[:MAX_KERNELS] if failure.analysis else (),
        "shown": _fitting(shown),
        "tried": tried[-MAX_TRIED:],
    }


def _with_answer(previous: Prompt, response: Response) -> tuple[tuple[str, str], ...]:
    """The conversation up to an answer, which is sent back without its thinking."""
    answer = encodable(trim_text(without_thinking(response.text or ""), MAX_ANSWER, head=0.75))
    return (*previous.history, ("user", previous.user), ("assistant", answer or NO_ANSWER))


def _fitting(shown: Sequence[Shown]) -> list[Shown]:
    """Those that fit into the room for them: the last ones, which are the best, go first."""
    kept: list[Shown] = []
    room = MAX_SHOWN
    for each in reversed(shown):
        if len(each.source) <= room:
            kept.insert(0, each)
            room -= len(each.source)
    return kept


def _common(problem: Problem, backend: str, size: str) -> dict[str, Any]:
    """The variables that every file of a template may use."""
    sizes = problem.sizes or {"full": {}}
    if size not in sizes:
        raise UsageError(f"{problem.id} has no size {size!r}; there are: {', '.join(sizes)}")
    return {
        "problem": problem,
        "backend": checked_backend(backend),
        "words": plug(backend).words,
        "on_gpu": plug(backend).on_gpu,
        "size": size,
        "size_values": sizes[size],
    }


def _prompt(
    template: Template, backend: str, *, system: str, user: str, history: tuple[tuple[str, str], ...] = ()
) -> Prompt:
    user = encodable(user)
    return Prompt(
        template=template.name,
        template_sha256=template.sha256(backend),
        system=system,
        user=user,
        history=history,
        sha256=prompt_sha256(system, history, user),
    )
