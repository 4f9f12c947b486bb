"""The plan of a batch from its configuration: settings and providers, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelproof.errors import ProviderFatal, UsageError
from kernelproof.prompting import checked_for_plans, default_template, open_template
from kernelproof.providers import (
    Provider,
    ProviderOptions,
    Question,
    RecordingProvider,
    open_provider,
)
from kernelproof.providers.context import cannot_fit
from kernelproof.providers.server_batches import MAX_QUESTIONS
from kernelproof.runs.batch import RunPlan, Terms
from kernelproof.runs.config import BatchConfig, ModelConfig
from kernelproof.runs.limits import Limits
from kernelproof.runs.prompts import first_question
from kernelproof.runs.strategies import find_strategy
from kernelproof.types import Problem, Response, RunSettings, Status, VerifySettings

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
    """What a batch keeps to."""
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
        key_variable=model.key_variable or DEFAULTS.key_variable,
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
        """The model's."""
        return self._name

    async def ask(self, question: Question) -> Response:
        """Raises ProviderFatal."""
        raise ProviderFatal(f"{self._name} cannot be asked: its key is missing")
