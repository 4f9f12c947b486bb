"""The evidence of a stored attempt in the words of a repair prompt: for searches and trainers of others."""

from __future__ import annotations

from kernelproof.db.views import StoredAttempt
from kernelproof.prompting import Failure, repair_text
from kernelproof.runs.strategies import find_strategy
from kernelproof.types import Extraction, Problem, Verification, VerifySettings


def template_of_searches() -> str:
    """The template that asks for better programs."""
    return str(getattr(find_strategy("refine"), "template", ""))


def feedback_text(
    problem: Problem,
    settings: VerifySettings,
    extraction: Extraction,
    verification: Verification | None,
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
