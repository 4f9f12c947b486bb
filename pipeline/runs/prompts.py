"""Which question is asked next: a strategy's proposal becomes a call of `kernelproof.prompting`."""

from __future__ import annotations

from collections.abc import Mapping

from kernelproof.db.views import StoredAttempt
from kernelproof.hashing import sha256_json
from kernelproof.prompting import (
    Failure,
    KnownPlan,
    Shown,
    Tried,
    first_prompt,
    plan_prompt,
    plans_prompt,
    repair_prompt,
    repair_text,
)
from kernelproof.runs.run_context import Judged, RunContext
from kernelproof.runs.strategies import Proposal, find_strategy
from kernelproof.types import (
    AttemptKey,
    Extraction,
    Problem,
    Prompt,
    Response,
    RunSettings,
    Status,
    Verification,
    VerifySettings,
)


def prompt_of(
    context: RunContext, problem: Problem, proposal: Proposal, judged: Mapping[int, Judged]
) -> Prompt:
    """The question of a proposal. `judged`: by turn, the attempts that it may build on."""
    parent, first = _at(judged, proposal.parent), _first(context, problem)
    verify = context.settings.verify
    asked = {"backend": verify.backend, "size": verify.size, "template": context.settings.template or ""}
    if proposal.plans:
        base, known = _answer(parent), _known(judged)
        return plans_prompt(problem, **asked, first=first, base=base, count=proposal.plans, known=known)
    if parent is None:
        return first
    tried = [
        Tried.of(each.response, each.failure)
        for _, each in sorted(judged.items())  # not as they happened to end
        if (each.parent_id, each.plan) == (parent.id, proposal.plan)
        and each.failure.status is not Status.PLANS
    ]
    if proposal.plan is not None:
        base, plan = _answer(_parent(judged, parent)), parent.plans[proposal.plan - 1]
        return plan_prompt(problem, **asked, first=first, base=base, plan=plan, tried=tried)
    return repair_prompt(
        problem,
        **asked,
        previous=parent.prompt if proposal.history else first,
        response=parent.response,
        failure=parent.failure,
        shown=[Shown.of(each.source, each.verification) for each in map(judged.__getitem__, proposal.shown)],
        tried=tried,
    )


def first_question(problem: Problem, verify: VerifySettings, template: str | None) -> Prompt:
    """The first question about a problem whose answers are judged by these settings."""
    return first_prompt(
        problem,
        backend=verify.backend,
        size=verify.size,
        template=template,
        numerics=verify.numerics,
        purity=verify.purity,
    )


def shown_program(proposal: Proposal, judged: Mapping[int, Judged]) -> str | None:
    """The program that the question of a proposal is about; None where it shows none.

    Where the parent's answer held none, and the whole conversation is shown, it is the last one in that.
    """
    parent = _at(judged, proposal.parent)
    if parent is not None and proposal.plan is not None:
        parent = _parent(judged, parent)
    while parent is not None and parent.source is None and proposal.history:
        parent = _parent(judged, parent)
    return parent.source if parent is not None else None


def _at(judged: Mapping[int, Judged], turn: int | None) -> Judged | None:
    return None if turn is None else judged[turn]


def _parent(judged: Mapping[int, Judged], attempt: Judged) -> Judged | None:
    return next((each for each in judged.values() if each.id == attempt.parent_id), None)


def _answer(judged: Judged | None) -> tuple[Response, Failure] | None:
    return None if judged is None else (judged.response, judged.failure)


def _first(context: RunContext, problem: Problem) -> Prompt:
    known = context.first_prompts
    if problem.sha256 not in known:
        known[problem.sha256] = first_question(problem, context.settings.verify, context.settings.template)
    return known[problem.sha256]


def _known(judged: Mapping[int, Judged]) -> list[KnownPlan]:
    """All plans of the sample so far, each with the results of its programs."""
    origin: dict[int, tuple[int, int]] = {}
    """By attempt: the answer with plans and the plan's number, from which it comes."""
    made: dict[tuple[int, int], list[Judged]] = {}
    for _, each in sorted(judged.items()):
        if each.failure.status is Status.PLANS:
            made |= {(each.id, number): [] for number in range(1, len(each.plans) + 1)}
            continue
        plan = (each.parent_id or 0, each.plan) if each.plan else origin.get(each.parent_id or 0)
        if plan in made:
            origin[each.id] = plan
            made[plan].append(each)
    titles = {(each.id, n): p.title for each in judged.values() for n, p in enumerate(each.plans, start=1)}
    return [_outcome(titles[plan], programs) for plan, programs in made.items()]


def _outcome(title: str, programs: list[Judged]) -> KnownPlan:
    timed = [each.times for each in programs if each.times is not None]
    return KnownPlan(
        title=title,
        programs=len(programs),
        correct=sum(each.failure.status is Status.CORRECT for each in programs),
        best=max(timed, key=lambda each: each.claimed, default=None),
    )


def question_key(settings: RunSettings, key: AttemptKey, prompt: Prompt) -> str:
    """SHA-256 over the run's name, the model with its server and parameters, the prompt, sample and turn.

    How answers are judged is no part of it: other settings of the verification ask nothing again. The run's
    name is: another name means fresh answers.
    """
    return sha256_json(
        {
            "name": settings.name,
            "model": settings.model,
            "base_url": settings.base_url,
            "endpoint": settings.endpoint,
            "sampling": settings.sampling,
            "problem": key.problem_sha256,
            "prompt": prompt.sha256,
            "sample": key.sample,
            "turn": key.turn,
        }
    )


def template_of_searches() -> str:
    """The template that asks for better programs."""
    return str(getattr(find_strategy("refine"), "template", ""))


def feedback_text(
    problem: Problem, settings: VerifySettings, extraction: Extraction, verification: Verification | None
) -> str:
    """Errors, or the times and what bounds them."""
    failure = (
        Failure.from_verification(verification)
        if verification is not None
        else Failure.from_extraction(extraction)
    )
    return repair_text(
        problem,
        backend=settings.backend,
        size=settings.size,
        template=template_of_searches(),
        failure=failure,
    )


def feedback_on(attempt: StoredAttempt) -> str | None:
    """The feedback on a stored attempt; None where it holds no answer."""
    if attempt.response is None or attempt.extraction is None:
        return None
    verification = attempt.verdict.verification if attempt.verdict else None
    settings = verification.settings if verification else attempt.run.verify
    return feedback_text(attempt.problem, settings, attempt.extraction, verification)
