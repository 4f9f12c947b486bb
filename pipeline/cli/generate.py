"""`kernelproof generate`: ask a model for kernels, verify every answer, keep every attempt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.cli.common import (
    INTERRUPTED,
    BackendChoice,
    BackendOption,
    BaselineOption,
    MeasureOption,
    NumericsChoice,
    NumericsOption,
    OwnKernelOption,
    PurityChoice,
    PurityOption,
    RigorChoice,
    RigorOption,
    SecondsOption,
    SizeOption,
    SuiteOption,
    TrialsOption,
    UnsafeOption,
    WorkspaceOption,
    given_path,
    nonempty_text,
)

if TYPE_CHECKING:
    from pipeline.providers import Provider
    from pipeline.runs.batch import Outcome, Plan
    from pipeline.types import RunSettings, VerifySettings


def generate(
    problems: Annotated[list[str], typer.Argument(help="Ids, names, `level1`, globs, or all.")],
    model: Annotated[str, typer.Option(help="openai:MODEL, replay:FILE, or replay:demo.")],
    samples: Annotated[int, typer.Option(min=1, help="Samples of each problem.")] = 1,
    turns: Annotated[int, typer.Option(min=1, max=20, help="Most turns of a sample; 1 is one shot.")] = 1,
    strategy: Annotated[
        str | None,
        typer.Option(
            parser=nonempty_text,
            metavar="<name>",
            help="sample: one question. refine: until correct [default: refine with --turns 2 or more].",
        ),
    ] = None,
    backend: BackendOption = BackendChoice.AUTO,
    size: SizeOption = "",
    template: Annotated[str, typer.Option(help="Prompt template: a name, or a directory.")] = "basic-v1",
    suite: SuiteOption = None,
    workspace: WorkspaceOption = None,
    run: Annotated[
        str | None, typer.Option(parser=nonempty_text, help="A name: another name is another run.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="The server [default: OPENAI_BASE_URL].")] = None,
    temperature: Annotated[float | None, typer.Option(help="Sent only when given.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Sent as max_completion_tokens when given.")] = None,
    reasoning_effort: Annotated[str | None, typer.Option(help="Sent only when given.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions asked at the same time.")] = 8,
    record: Annotated[
        Path | None,
        typer.Option(
            parser=given_path, metavar="<path>", help="Append the answers to this file, for replay."
        ),
    ] = None,
    seconds: SecondsOption = None,
    trials: TrialsOption = 3,
    measure: MeasureOption = True,
    rigor: RigorOption = RigorChoice.STANDARD,
    baseline: BaselineOption = None,
    numerics: NumericsOption = NumericsChoice.FP32,
    purity: PurityOption = PurityChoice.ANY,
    own_kernel: OwnKernelOption = True,
    plain: Annotated[bool, typer.Option("--plain", help="One line an attempt, no progress bar.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be asked, ask nothing.")] = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Ask a model for kernels and verify every answer. The same command again continues where it stopped."""
    from pipeline.cli.common import verify_settings
    from pipeline.engine.engine import require_device
    from pipeline.problems import open_suite
    from pipeline.providers import RecordingProvider, open_provider
    from pipeline.runs.batch import Plan

    chosen = open_suite(suite).select(problems)
    settings = verify_settings(
        chosen,
        backend,
        size,
        seconds=seconds,
        trials=trials,
        measure=measure,
        rigor=rigor,
        numerics=numerics,
        purity=purity,
        baseline=baseline,
        own_kernel=own_kernel,
        unsafe=unsafe,
    )
    sampling = {
        "temperature": temperature,
        "max_completion_tokens": max_tokens,
        "reasoning_effort": reasoning_effort,
    }
    sampling = {name: value for name, value in sampling.items() if value is not None}
    provider: Provider = open_provider(model, base_url=base_url, sampling=sampling)
    if record is not None:
        provider = RecordingProvider(provider, record)
    run_settings = _run_settings(provider.name, base_url, template, sampling, turns, strategy, run, settings)
    plan = Plan(run_settings, chosen, samples, questions=concurrency)
    if dry_run:
        _say_plan(plan)
        return
    require_device(settings.backend)
    outcome = _run(plan, provider, workspace, plain)
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)


def _run_settings(
    model: str,
    base_url: str | None,
    template: str,
    sampling: dict[str, Any],
    turns: int,
    strategy: str | None,
    name: str | None,
    settings: VerifySettings,
) -> RunSettings:
    from pipeline.prompting import open_template
    from pipeline.runs.strategies import find_strategy
    from pipeline.types import RunSettings

    chosen = RunSettings(
        name=name,
        model=model,
        base_url=base_url,
        template=template,
        template_sha256=open_template(template).sha256(settings.backend),
        sampling=sampling,
        turns=turns,
        verify=settings,
    )
    if strategy is None or strategy == chosen.strategy_name:
        return chosen
    find_strategy(strategy)
    return chosen.model_copy(update={"strategy": strategy})


def _say_plan(plan: Plan) -> None:
    from pipeline.prompting import first_prompt
    from pipeline.report.verification import rules

    verify, run = plan.settings.verify, plan.settings
    count = len(plan.problems) * plan.samples
    typer.echo(f"model      {run.model}")
    typer.echo(f"problems   {len(plan.problems)}: {', '.join(problem.id for problem in plan.problems)}")
    typer.echo(f"questions  {count} first turns, at most {count * run.turns} in all")
    typer.echo(f"strategy   {run.strategy_name}")
    typer.echo(f"backend    {verify.backend}, size {verify.size}, template {run.template}")
    typer.echo(f"rules      {rules(verify)}")
    first = first_prompt(
        plan.problems[0],
        backend=verify.backend,
        size=verify.size,
        template=run.template or "",
        numerics=verify.numerics,
        purity=verify.purity,
    )
    characters = len(first.system) + len(first.user)
    typer.echo(f"prompt     {characters} characters for {plan.problems[0].id}; see kernelproof prompt")


def _run(plan: Plan, provider: Provider, workspace: Path | None, plain: bool) -> Outcome:
    import anyio

    from db.store import open_store
    from pipeline.cli.progress import BatchDisplay
    from pipeline.engine.engine import Engine
    from pipeline.runs.batch import run_batch
    from pipeline.workspace import open_workspace

    place = open_workspace(workspace)

    async def work() -> Outcome:
        try:
            return await run_batch(
                plan, store, engine, provider, generated=place.generated, on_event=display.on_event
            )
        finally:
            await provider.aclose()

    total = len(plan.problems) * plan.samples
    unsafe = plan.settings.verify.unsafe
    with open_store(place.database) as store, Engine(unsafe=unsafe, many=True) as engine:
        with BatchDisplay(total, plain=plain) as display:
            outcome = anyio.run(work)
        display.summary(outcome, place.database)
    return outcome
