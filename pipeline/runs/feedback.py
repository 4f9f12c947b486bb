"""The evidence of a stored attempt in the words of a repair prompt: for searches and trainers of others."""

from __future__ import annotations

from kernelproof.db.views import StoredAttempt
from kernelproof.prompting import Failure, repair_prompt
from kernelproof.runs.prompts import first_question
from kernelproof.runs.strategies import find_strategy
from kernelproof.types import Extraction, Problem, Prompt, Response, Verification, VerifySettings


def template_of_searches() -> str:
    """The template that asks for better programs."""
    return str(getattr(find_strategy("refine"), "template", ""))


def feedback_text(
    problem: Problem,
    settings: VerifySettings,
    response: Response,
    extraction: Extraction,
    verification: Verification | None,
    *,
    asked: Prompt | None = None,
) -> str:
    """Errors, or the times and what bounds them. `asked`: the first question, where it is known."""
    template = template_of_searches()
    failure = (
        Failure.from_verification(verification)
        if verification is not None
        else Failure.from_extraction(extraction)
    )
    return repair_prompt(
        problem,
        backend=settings.backend,
        size=settings.size,
        template=template,
        previous=asked or first_question(problem, settings, template),
        response=response,
        failure=failure,
    ).user


def feedback_on(attempt: StoredAttempt) -> str | None:
    """The feedback on a stored attempt; None where it holds no answer."""
    if attempt.response is None or attempt.extraction is None:
        return None
    verification = attempt.verdict.verification if attempt.verdict else None
    settings = verification.settings if verification else attempt.run.verify
    return feedback_text(attempt.problem, settings, attempt.response, attempt.extraction, verification)
