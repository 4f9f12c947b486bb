"""`kernelproof verify`: one candidate from a file, with every check; or all of a folder or a JSONL file. And
`kernelproof compare`: two kernels of one problem, and one interval: how many times as fast the new one is."""

from __future__ import annotations

from contextlib import ExitStack, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.cli.completion import problems
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import (
    INTERRUPTED,
    FollowLinksOption,
    JsonOption,
    RunOption,
    StorageOptions,
    SuiteOption,
    VerifyOptions,
)
from kernelproof.errors import KernelproofError, UsageError
from kernelproof.report.plain import clean, json_line, json_text, say, screen
from kernelproof.wording import counted
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from rich.console import Console

    from kernelproof.cli.display import Display
    from kernelproof.jobs import Verdict
    from kernelproof.runs.candidates import CandidateInput, Done, ManyDone
    from kernelproof.runs.tuning import Gain
    from kernelproof.types import Status, VerifySettings


def verify(
    file: Annotated[
        Path,
        Argument("A candidate's source or a raw response, or - to read it; a folder or .jsonl file of them."),
    ],
    *,
    problem: Annotated[
        str | None,
        Option(
            "The problem's id, name, or file [default for many: what paths or lines say].",
            parser=str,
            offered=problems,
        ),
    ] = None,
    options: VerifyOptions,
    suite: SuiteOption = None,
    storage: StorageOptions,
    store: Annotated[bool, Option("Keep it as an attempt in the workspace.")] = True,
    run: RunOption = None,
    html: Annotated[
        Path | None, Option("Of one file, write the result with its evidence as one HTML file.")
    ] = None,
    again: Annotated[bool, Option("Of many, verify also those that the workspace has already.")] = False,
    follow_links: FollowLinksOption = False,
    checks: Annotated[
        bool, Option("Of one file, also every check with its evidence, and all times.")
    ] = False,
    sanitize: Annotated[
        bool,
        Option(
            "Of one file, call it once more under sanitizers. Their reports are flags and change no status."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Verify one candidate, or many. Exit code 0 when all are correct, 1 when one is not, or is left out."""
    from kernelproof.cli.show import write_page
    from kernelproof.db.store import open_store
    from kernelproof.report.verification import json_facts, print_verified
    from kernelproof.runs.candidates import holds_many, refuse_others
    from kernelproof.types import Status
    from kernelproof.verifier.engine.engine import require_device
    from kernelproof.verifier.engine.sanitizers import sanitizers_for

    if sanitize and holds_many(file):
        raise UsageError("--sanitize is for one file; for many, kernelproof runs rejudge RUN --sanitize")
    if html is not None and (holds_many(file) or not store):
        raise UsageError(
            "--html writes the page of one candidate that is kept: give one file, without --no-store"
        )
    candidates, notes = _candidates(file, problem, suite, follow_links)
    settings = options.settings_for(candidates)
    refuse_others(candidates, settings.backend)
    require_device(settings.backend)
    if sanitize:
        sanitizers_for(settings.backend)  # what is missing is said before anything runs
    place = storage.create_workspace().database if store else None
    if not holds_many(file):
        (done,) = judge_each(candidates, settings, place, run, spinner=not as_json, sanitize=sanitize)
        found = (done.extraction, done.status, done.verification, done.attempt_id)
        if as_json:
            print(json_text(json_facts(*found)))
        else:
            print_verified(*found, screen(), checks=checks, where=storage.option)
        if html is not None and place is not None and done.attempt_id is not None:
            with open_store(place, only_read=True) as kept:
                say(write_page(kept, done.attempt_id, html), err=True)
        statuses = [done.status]
    else:
        statuses = _many(candidates, settings, place, run, again, as_json)
    if notes or any(status is not Status.CORRECT for status in statuses):
        raise typer.Exit(1)


def _candidates(
    file: Path, problem: str | None, suite: Path | None, follow_links: bool
) -> tuple[list[CandidateInput], list[str]]:
    """The candidates, and what was left out, which is said at once."""
    from kernelproof.problems import open_suite
    from kernelproof.runs.candidates import holds_many, read_candidates

    if holds_many(file):
        opened = open_suite(suite)
        of_all = opened.find(problem) if problem is not None else None
        notes: list[str] = []
        candidates = read_candidates(file, opened, of_all, follow_links=follow_links, notes=notes)
        for note in notes:
            say(note, err=True)
        return candidates, notes
    return [read_one(file, problem, suite)], []


def read_one(file: Path, problem: str | None, suite: Path | None) -> CandidateInput:
    """The candidate in a file, or in standard input. Raises UsageError where it cannot be read, or no problem
    is named."""
    from kernelproof.problems import open_suite
    from kernelproof.runs.candidates import candidate_from_text
    from kernelproof.runs.files import STANDARD_INPUT, read_standard_input, read_text

    piped = str(file) == "-"
    name = STANDARD_INPUT if piped else str(file)
    text = None if piped else read_text(file)
    if problem is None:
        raise UsageError(f"which problem is {name} for? give --problem")
    found = open_suite(suite).find(problem)
    return candidate_from_text(name, read_standard_input() if text is None else text, found)


def judge_each(
    candidates: Sequence[CandidateInput],
    settings: VerifySettings,
    database: DatabasePlace | None,
    run: str | None,
    *,
    spinner: bool,
    sanitize: bool = False,
) -> Generator[Verdict]:
    """Verifies each now, one after the other by one engine, and keeps it as an attempt where there is a
    database. `spinner`: a terminal shows which stage it is in."""
    from kernelproof.db.store import open_store
    from kernelproof.jobs import Job, Judge, NewAttempt, Purpose
    from kernelproof.jobs.judge import files_run
    from kernelproof.verifier.engine.engine import Engine

    console = screen()
    with ExitStack() as stack:
        engine = stack.enter_context(Engine(unsafe=settings.unsafe))
        judge = Judge(engine, stack.enter_context(open_store(database)) if database else None)
        for candidate in candidates:
            keep = NewAttempt(files_run(settings, run), candidate.stored_response)
            job = Job(
                *(candidate.problem, candidate.extraction, settings, keep, Purpose.MEASUREMENT),
                sanitize=sanitize,
            )
            with console.status("starting") if spinner and console.is_terminal else nullcontext() as status:
                done = judge.judge(job, status.update if status else lambda _: None)
            yield done


def _many(
    candidates: Sequence[CandidateInput],
    settings: VerifySettings,
    database: DatabasePlace | None,
    run: str | None,
    again: bool,
    as_json: bool,
) -> list[Status]:
    import anyio

    from kernelproof.cli.display import Display
    from kernelproof.db.store import open_store
    from kernelproof.runs.candidates import verify_all
    from kernelproof.verifier.engine.engine import Engine

    with ExitStack() as stack:
        store = stack.enter_context(open_store(database)) if database else None
        engine = stack.enter_context(Engine(unsafe=settings.unsafe, many=True))
        display = stack.enter_context(Display("candidates", len(candidates), as_json=as_json))
        work = partial(verify_all, candidates, settings, engine, store=store, label=run, again=again)
        outcome = anyio.run(partial(work, on_done=partial(_say, display), unread=lambda: display.unread))
    if not as_json:
        _summary(outcome, database)
    if outcome.missing:
        raise typer.Exit(INTERRUPTED)
    return [done.verdict.status for done in outcome.done]


def _say(display: Display, done: Done) -> None:
    from kernelproof.report.verification import json_facts

    candidate, v = done.input, done.verdict
    facts = {"id": candidate.id, "problem": candidate.problem.id, "kept": v.reused}
    facts |= json_facts(v.extraction, v.status, v.verification, v.attempt_id)
    display.ended(candidate.id, v.status.value, json_line(facts))


def _summary(outcome: ManyDone, database: DatabasePlace | None) -> None:
    from kernelproof.cli.display import print_counts
    from kernelproof.report.verification import Timed, print_fastest
    from kernelproof.types import Status

    console = screen()
    kept = sum(done.verdict.reused for done in outcome.done)
    where = f" in {database}" if database else ""
    reused = f"; {kept} of them were kept before (--again verifies them anew)" if kept else ""
    console.print(f"{counted(len(outcome.done), 'candidate')}{where}{reused}", soft_wrap=True)
    print_counts(console, [done.verdict.status for done in outcome.done])
    timed = [
        Timed((done.input.id, done.input.problem.id), v.verification.measurement, v.attempt_id)
        for done in outcome.done
        if (v := done.verdict).status is Status.CORRECT and v.verification and v.verification.measurement
    ]
    print_fastest(("candidate", "problem"), timed, console)
    if outcome.missing:
        rest = "run the same command again to continue" if database else "--no-store keeps nothing of this"
        console.print(f"{outcome.missing} not verified: {rest}")


def compare(
    old: Annotated[Path, Argument("A candidate's source or a raw response, such as yesterday's kernel.")],
    new: Annotated[Path, Argument("Another for the same problem, such as today's.")],
    *,
    problem: Annotated[
        str | None, Option("The problem's id, name, or file.", parser=str, offered=problems)
    ] = None,
    options: VerifyOptions,
    suite: SuiteOption = None,
    storage: StorageOptions,
    store: Annotated[bool, Option("Keep both as attempts in the workspace.")] = True,
    run: RunOption = None,
    fail_if_slower: Annotated[bool, Option("Exit code 1 also when the new one is surely slower.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Verify two candidates of one problem, and compare their speed. Exit code 1 when one is not correct."""
    # Both are verified one after the other, each timed against the reference, and `runs.tuning.gain` puts the
    # two speedups together. The interval is wider than that of either.
    from kernelproof.runs.candidates import refuse_others
    from kernelproof.types import Status
    from kernelproof.verifier.engine.engine import require_device

    candidates = [read_one(file, problem, suite) for file in (old, new)]
    settings = options.settings_for(candidates)
    if not settings.measure:
        raise UsageError("compare times both: leave out --no-measure")
    refuse_others(candidates, settings.backend)
    require_device(settings.backend)
    place = storage.create_workspace().database if store else None
    names, verdicts, console = _names(old, new), [], screen()
    with closing(judge_each(candidates, settings, place, run, spinner=not as_json)) as judged:
        for name, done in zip(names, judged, strict=True):
            verdicts.append(done)
            if not as_json:
                _say_one(name, done, console)
    gain, slower = _gains(*verdicts)
    if as_json:
        print(json_line(_as_json(names, verdicts, gain, slower)))
    else:
        _say_end(names, verdicts, gain, slower, console, storage.option)
    if any(done.status is not Status.CORRECT for done in verdicts):
        raise typer.Exit(1)
    if gain is None:
        raise KernelproofError("both are correct, but were not timed, so nothing is compared")
    if slower and fail_if_slower:
        raise typer.Exit(1)


def _names(old: Path, new: Path) -> tuple[str, str]:
    """How the two are called: by their last parts where these differ."""
    if old.name != new.name:
        return clean(old.name), clean(new.name)
    return clean(str(old)), clean(str(new))


def _say_one(name: str, done: Verdict, console: Console) -> None:
    from kernelproof.report.verification import print_headline

    v = done.verification
    print_headline(done.status, v, done.extraction.reason, done.attempt_id, console, name)


def _say_end(
    names: tuple[str, str],
    verdicts: list[Verdict],
    gain: Gain | None,
    slower: bool,
    console: Console,
    where: str = "",
) -> None:
    """The closing line: how many times as fast the new one is, or why nothing is compared. Then what next."""
    from kernelproof.report.findings import gain_words
    from kernelproof.report.verification import LONGER, next_steps, print_next
    from kernelproof.types import Status

    pairs = zip(names, verdicts, strict=True)
    failed = {name: done for name, done in pairs if done.status is not Status.CORRECT}
    if failed:
        console.print(f"nothing is compared; not correct: {', '.join(failed)}")
        first = next(iter(failed.values()))
        print_next(next_steps(first.status, first.verification, first.attempt_id, where), console)
    elif gain is not None:
        sure = gain.shown or slower
        words = gain_words(gain.ratio, gain.interval, gain.noise, shown=sure, other=names[0])
        console.print(f"{names[1]}: {words}{', surely slower' if slower else ''}")
        v = verdicts[1].verification
        if not sure and v is not None:
            longer = f"the same command with --rigor {LONGER[v.settings.rigor]}"
            print_next({longer: "measures longer, best on a quiet machine"}, console)


def _gains(old: Verdict, new: Verdict) -> tuple[Gain | None, bool]:
    from kernelproof.runs.tuning import gain

    loss = gain(new.measurement, old.measurement)
    return gain(old.measurement, new.measurement), loss is not None and loss.shown


def _as_json(
    names: tuple[str, str], verdicts: list[Verdict], gain: Gain | None, slower: bool
) -> dict[str, object]:
    return {
        "candidates": [
            {"file": name, "attempt": done.attempt_id, "status": done.status}
            for name, done in zip(names, verdicts, strict=True)
        ],
        "ratio": gain.ratio if gain else None,
        "interval": [gain.interval.low, gain.interval.high] if gain else None,
        "faster": gain.shown if gain else None,
        "slower": slower if gain else None,
    }
