"""The plan of a batch from its configuration, and what it would ask and cost; nothing is asked here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelproof.db.store import Store
from kernelproof.db.views import AttemptState, ModelUsage
from kernelproof.errors import ProviderFatal, UsageError
from kernelproof.jobs import RETRIED
from kernelproof.prompting import checked_for_plans, default_template, open_template
from kernelproof.providers import Provider, ProviderOptions, Question, RecordingProvider, open_provider
from kernelproof.providers.context import BYTES_A_TOKEN, cannot_fit
from kernelproof.providers.server_batches import MAX_QUESTIONS
from kernelproof.runs.batch import RunPlan, Terms
from kernelproof.runs.config import BatchConfig, ModelConfig, Price
from kernelproof.runs.limits import Limits
from kernelproof.runs.prompts import first_question, question_key
from kernelproof.runs.strategies import find_strategy
from kernelproof.types import AttemptKey, Problem, Prompt, Response, RunSettings, Status, VerifySettings

DEFAULTS = ProviderOptions()


def plans_of(
    config: BatchConfig,
    problems: Sequence[Problem],
    verify: VerifySettings,
    *,
    record: Path | None = None,
    ask: bool = True,
) -> list[RunPlan]:
    """A plan for each model. Without `ask`, nothing will be asked, and no key is needed.

    Raises UsageError for models, options, templates and strategies that make no sense, ProviderFatal when a
    key is missing.
    """
    models = config.all_models
    if not models:
        raise UsageError("no model; give --model openai:MODEL, or [[models]] in the configuration")
    plans = [_plan(config, model, problems, verify, record, ask) for model in models]
    if ask:
        for plan in plans:
            _check_budget(config, plan)
    return plans


def _check_budget(config: BatchConfig, plan: RunPlan) -> None:
    """Raises UsageError where a limit of the command does not even pay one question of this model."""
    limits: list[tuple[str, int]] = []
    if config.max_tokens_total is not None:
        limits.append((f"--max-tokens-total {config.max_tokens_total}", config.max_tokens_total))
    price = plan.price
    dollars = min(price.input, price.input if price.cached is None else price.cached) if price else 0.0
    if config.max_cost is not None and dollars > 0:
        limits.append((f"--max-cost {config.max_cost:g}", int(config.max_cost / dollars * 1e6)))
    verify, template = plan.settings.verify, plan.settings.template
    for said, tokens in limits:
        questions = (first_question(each, verify, template) for each in plan.problems)
        if plan.problems and all(cannot_fit(question, tokens) for question in questions):
            raise UsageError(
                f"{said} is less than one question to {plan.settings.model} takes, of any of the problems, "
                "without its answer; give more"
            )


def terms_of(config: BatchConfig, generated: Path | None, again: frozenset[Status] = frozenset()) -> Terms:
    limits = Limits(
        max_cost=config.max_cost,
        max_tokens_total=config.max_tokens_total,
        max_time=config.max_time,
        max_device_time=config.max_device_time,
        max_attempts=config.max_attempts,
        equal_errors=config.stop_after_errors,
    )
    divides = config.divide == "gain"
    return Terms(limits=limits, again=again, config=config.keys(), generated=generated, divides=divides)


def _plan(
    config: BatchConfig,
    model: ModelConfig,
    problems: Sequence[Problem],
    verify: VerifySettings,
    record: Path | None,
    ask: bool,
) -> RunPlan:
    concurrency = model.concurrency or (MAX_QUESTIONS if model.server_batch else DEFAULTS.concurrency)
    provider = _provider(model, concurrency, ask)
    template = _template(config, verify)
    settings = RunSettings(
        name=config.run,
        model=provider.name,
        base_url=model.base_url,
        endpoint=model.endpoint or DEFAULTS.endpoint,
        template=template,
        template_sha256=open_template(template).sha256(verify.backend),
        sampling=model.sampling,
        turns=config.turns,
        verify=verify,
        good_enough=config.good_enough,
    )
    if config.strategy is not None and config.strategy != settings.strategy_name:
        settings = settings.model_copy(update={"strategy": config.strategy})
    if verify.measure and _races(config, settings):
        settings = settings.model_copy(update={"race": True})
    if record is not None and ask:
        provider = RecordingProvider(provider, record)
    samples = model.samples or config.samples
    return RunPlan(
        *(settings, provider, problems, samples),
        questions=concurrency,
        price=model.price,
        context_length=model.context_length,
    )


def _races(config: BatchConfig, settings: RunSettings) -> bool:
    """Whether samples race: as the user says, else as the strategy does."""
    if config.race is not None:
        return config.race
    return bool(getattr(find_strategy(settings.strategy_name), "races", False))


def _template(config: BatchConfig, verify: VerifySettings) -> str:
    """The template that the user names; else the chosen strategy's, if it has one; else the backend's."""
    chosen = find_strategy(config.strategy) if config.strategy is not None else None
    own = getattr(chosen, "template", None)
    template = config.template or str(own or default_template(verify.backend))
    if getattr(chosen, "asks_for_plans", False):
        checked_for_plans(open_template(template))
    return template


def _provider(model: ModelConfig, concurrency: int, ask: bool) -> Provider:
    options = ProviderOptions(
        base_url=model.base_url,
        sampling=model.sampling,
        timeout_s=model.timeout or DEFAULTS.timeout_s,
        max_retries=DEFAULTS.max_retries if model.retries is None else model.retries,
        concurrency=concurrency,
        endpoint=model.endpoint or DEFAULTS.endpoint,
        stream=DEFAULTS.stream if model.stream is None else model.stream,
        key_variable=model.key_variable,
        context_length=model.context_length,
        server_batch=bool(model.server_batch),
    )
    try:
        return open_provider(model.model, options)
    except ProviderFatal:
        if ask:
            raise
        return _Nobody(model.model)


class _Nobody(Provider):
    """Stands for a model that cannot be asked here, where nothing is asked."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def ask(self, question: Question) -> Response:
        """Raises ProviderFatal."""
        raise ProviderFatal(f"{self._name} cannot be asked: its key is missing")


@dataclass(frozen=True)
class Forecast:
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
