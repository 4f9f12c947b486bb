"""What a batch would ask and cost: from the plans and from what is stored, without asking anything."""

from __future__ import annotations

from dataclasses import dataclass

from kernelproof.db.store import Store
from kernelproof.db.views import AttemptState, ModelUsage
from kernelproof.jobs import RETRIED
from kernelproof.providers.context import BYTES_A_TOKEN, cannot_fit
from kernelproof.runs.batch import RunPlan
from kernelproof.runs.prices import Price
from kernelproof.runs.prompts import first_question, question_key
from kernelproof.types import AttemptKey, Problem, Prompt, Status


@dataclass(frozen=True)
class Forecast:
    """Of one model."""

    plan: RunPlan
    finished: int
    """Samples of which nothing is left to do."""
    to_judge: int
    """Attempts whose answer is stored, and that are still to be judged."""
    questions: int
    """Questions that are certain to be asked."""
    follow_ups: int
    """Most questions that may follow, as answers fail and turns are left."""
    too_long: int
    """Of the certain questions, those whose prompt surely does not fit the context that the user told."""
    prompt_tokens: int
    """Of the certain questions, estimated."""
    completion_tokens: int | None
    """Of their answers, estimated; None where nothing says how long this model's answers are."""
    measured_on: int
    """Stored answers of this model that the estimate rests on."""
    cost_usd: float | None
    """Of the certain questions; None where nothing says."""


def forecast(plan: RunPlan, store: Store | None) -> Forecast:
    """What a plan would ask, given the store; None: nothing is stored."""
    run_id = store.run_id(plan.settings) if store else None
    known = store.attempts_of(run_id) if store and run_id is not None else {}
    usage = store.usage_of(plan.settings.model) if store else None
    verify, template = plan.settings.verify, plan.settings.template
    prompts = {each.sha256: first_question(each, verify, template) for each in plan.problems}
    samples = [
        _Sample(plan, p, n, known, prompts[p.sha256]) for p in plan.problems for n in range(plan.samples)
    ]
    stored = store.answered(sample.first_key for sample in samples) if store else set()
    most = plan.context_length
    long = {sha for sha, prompt in prompts.items() if most is not None and cannot_fit(prompt, most)}
    counts = [sample.counts(stored) for sample in samples]
    questions = sum(asked for _, asked, _ in counts)
    size = sum(sample.bytes for sample, (_, asked, _) in zip(samples, counts, strict=True) if asked)
    prompt_tokens, completion_tokens, cost = _spent(size, questions, usage, plan.price)
    return Forecast(
        plan=plan,
        finished=sum(each == (0, 0, 0) for each in counts),
        to_judge=sum(judged for judged, _, _ in counts),
        questions=questions,
        follow_ups=sum(more for _, _, more in counts),
        too_long=sum(asked for s, (_, asked, _) in zip(samples, counts, strict=True) if s.problem in long),
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        measured_on=usage.answers if usage else 0,
        cost_usd=cost,
    )


class _Sample:
    """One sample: how far it is."""

    def __init__(
        self,
        plan: RunPlan,
        problem: Problem,
        sample: int,
        known: dict[AttemptKey, AttemptState],
        first: Prompt,
    ) -> None:
        limit = plan.provider.turns(problem.id, plan.settings.verify.backend, sample)
        self._turns = min(plan.settings.turns, limit or plan.settings.turns)
        self._one_shot = plan.settings.strategy_name == "sample"
        self._ends_correct = plan.settings.strategy_name in ("sample", "repair")
        self._states = [known.get(self._key(problem, sample, turn)) for turn in range(1, self._turns + 1)]
        self.first_key = question_key(plan.settings, self._key(problem, sample, 1), first)
        self.problem = problem.sha256
        self.bytes = len((first.system + first.user).encode("utf-8", "surrogatepass"))

    @staticmethod
    def _key(problem: Problem, sample: int, turn: int) -> AttemptKey:
        return AttemptKey(problem_id=problem.id, problem_sha256=problem.sha256, sample=sample, turn=turn)

    def counts(self, stored: set[str]) -> tuple[int, int, int]:
        """Attempts to judge, questions that are certain, and questions that may follow.

        Turns follow each other, as `sample` and `repair` have it; other strategies may ask fewer or more of
        them at once, and never more in all.
        """
        last = 1 if self._one_shot else self._turns
        for turn, state in enumerate(self._states[:last], start=1):
            more = last - turn
            if state is not None and state.status is not None and state.status not in RETRIED:
                if state.status is Status.CORRECT and self._ends_correct:
                    return 0, 0, 0
                continue
            if state is not None and state.status is Status.PROVIDER_ERROR and not state.retriable:
                return 0, 0, 0
            if (state is not None and state.has_response) or (turn == 1 and self.first_key in stored):
                return 1, 0, more
            return 0, 1, more
        return 0, 0, 0


def _spent(
    size: int, questions: int, usage: ModelUsage | None, price: Price | None
) -> tuple[int, int | None, float | None]:
    """Prompt tokens, completion tokens and cost of so many questions with so many bytes of prompts."""
    if not questions:
        return 0, 0, 0.0
    if usage is None or not usage.answers:
        prompt = round(size / BYTES_A_TOKEN)
        return prompt, None, None
    prompt = round(size * usage.prompt_tokens / max(1, usage.prompt_bytes))
    completion = round(questions * usage.completion_tokens / usage.answers)
    if price is not None:
        return prompt, completion, price.of(prompt, completion)
    return prompt, completion, questions * usage.cost_usd / usage.priced if usage.priced else None
