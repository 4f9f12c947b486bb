"""One attempt on screen: what was asked, answered, built, checked and measured."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Literal

from rich.console import Console

from kernelproof.db.views import StoredAttempt, StoredResponse, StoredVerification
from kernelproof.errors import KernelproofError
from kernelproof.providers.body import cut_hint
from kernelproof.report.findings import times
from kernelproof.report.layout import pairs, print_facts, print_table, print_words
from kernelproof.report.progress import dollars
from kernelproof.report.verification import (
    next_steps,
    print_failure,
    print_headline,
    print_next,
    print_verification,
    result_facts,
    rules,
)
from kernelproof.types import Environment, Response, Status, Usage, Verification
from kernelproof.wording import counted

MOST_SHOWN = 200_000
"""Characters of one text that are shown among the others; alone it is shown whole."""

VERIFICATION_COLUMNS = ("verification", "kind", "status", "speedup", "device", "made", "note")
Part = Literal["prompt", "response", "source", "log"]
"""A text of an attempt that can be had alone, as it is stored."""


def print_attempt(attempt: StoredAttempt, console: Console, *, where: str = "") -> None:
    """The result, what it rests on, and what to look at next. `where`: the option that names its workspace,
    for the commands."""
    verification = _verification(attempt)
    _print_headline(attempt, console)
    facts = {name: fact for name, fact in summary_facts(attempt).items() if name in OF_THE_ANSWER}
    facts["problem"] = attempt.problem.summary or attempt.problem.name
    print_facts(console, facts | (result_facts(verification) if verification else {}))
    if verification is not None and verification.status is not Status.CORRECT:
        print_failure(verification, console)
    steps = next_steps(_status(attempt), verification, attempt.id, where)
    whole = f"kernelproof show {attempt.id}{where} --all"
    print_next(steps | {whole: "all of it: prompt, answer, source, build log, machine"}, console)


def print_all(attempt: StoredAttempt, console: Console) -> None:
    """The whole attempt. Texts of models and compilers are printed with control characters taken out."""
    _print_headline(attempt, console)
    print_facts(console, summary_facts(attempt))
    for title, section in _SECTIONS:
        print_words(console, f"\n== {title} ==", "bold")
        section(attempt, console)


OF_THE_ANSWER = ("reason", "claimed", "model", "strategy", "parameters", "built on")
"""Facts of the summary that stand beside a result."""


def print_checks(attempt: StoredAttempt, console: Console) -> None:
    verification = _verification(attempt)
    if verification is None:
        print_words(console, "No verification is stored.")
        return
    print_headline(_status(attempt), verification, "", attempt.id, console)
    print_facts(console, result_facts(verification))
    print_verification(verification, console)


def text_of(attempt: StoredAttempt, part: Part) -> str:
    """One text exactly as it is stored: the source, the answer's text, the prompt's turns, the build log.

    Raises Missing when there is none.
    """
    match part:
        case "prompt":
            turns = attempt.prompt.turns if attempt.prompt else None
            text = None if turns is None else "".join(f"[{role}]\n{said}\n" for role, said in turns)
        case "response":
            text = attempt.response.text if attempt.response else None
        case "source":
            text = attempt.source
        case "log":
            text = _log_text(attempt)
    if text is None:
        why = _why_no_program(attempt) if part in ("source", "response") else ""
        raise Missing(f"attempt {attempt.id} has no {part}{f': {why}' if why else ''}")
    return text


class Missing(KernelproofError):
    """The attempt has no such text."""


def _log_text(attempt: StoredAttempt) -> str | None:
    told = []
    for head, commands, log in builds_of(_verification(attempt)):
        told += [head, *(f"$ {command}" for command in commands), log, ""]
    return "\n".join(told) or None


def _print_headline(attempt: StoredAttempt, console: Console) -> None:
    """The result in a line, and below it which answer it is of, and what was altered in the store."""
    print_headline(_status(attempt), _verification(attempt), _why_no_program(attempt), attempt.id, console)
    for alteration in attempt.alterations:
        print_words(console, f"ALTERED: {alteration}", "bold red")
    key = attempt.key
    print_words(
        console, f"{key.problem_id}, sample {key.sample}, turn {key.turn}, run {attempt.run_id}", "dim"
    )


def _status(attempt: StoredAttempt) -> Status | None:
    """The verdict's status, else the attempt's own; None while it is in progress."""
    return attempt.verdict.verification.status if attempt.verdict else attempt.status


def summary_facts(attempt: StoredAttempt) -> dict[str, str]:
    """Name and fact of the attempt as a whole; empty where there is nothing to say."""
    key, run = attempt.key, attempt.run
    verdict, status = attempt.verdict, _status(attempt)
    return {
        "status": "in progress" if status is None else f"{status}: {status.meaning}",
        "reason": verdict.verification.reason if verdict else _why_no_program(attempt),
        "claimed": _claimed(attempt),
        "model": run.model,
        "run": f"{attempt.run_id} {run.name or ''}".strip(),
        "backend, size": f"{run.verify.backend}, {run.verify.size}",
        "strategy": run.strategy or "",
        "rules": rules(run.verify),
        "problem": f"{attempt.problem.summary or attempt.problem.name} (sha256 {key.problem_sha256[:12]})",
        "parameters": _parameters(attempt),
        "built on": _built_on(attempt),
        "begun": attempt.created,
        "finished": attempt.finished or "",
    }


def _built_on(attempt: StoredAttempt) -> str:
    """`#16`, or `plan 2 of #16`."""
    plan = f"plan {attempt.plan} of " if attempt.plan is not None else ""
    return f"{plan}#{attempt.parent_id}" if attempt.parent_id else ""


def _parameters(attempt: StoredAttempt) -> str:
    """The values that a tuner put into the source: `TILE 64, UNROLL 4`."""
    if (attempt.run.kind != "tune" and "tuned" not in attempt.run.sampling) or attempt.response is None:
        return ""
    return pairs(attempt.response.raw.get("tune", {}))


def _claimed(attempt: StoredAttempt) -> str:
    """The claim of an imported program: `correct, 0.72 ms, 2.10× as fast, NVIDIA H100 (FILE)`."""
    said = attempt.reported
    if said is None:
        return ""
    if not said.has_claim:
        return f"nothing, of {said.source}"
    right = {True: "correct", False: "wrong", None: ""}[said.correct]
    taken = "" if said.runtime_ms is None else f"{said.runtime_ms:.4g} ms"
    speedup = "" if said.speedup is None else f"{times(said.speedup)} as fast"
    words = ", ".join(filter(None, (right, taken, speedup, said.device)))
    return f"{words or 'nothing that is understood'} (of {said.source}, in {said.said_in})"


def _why_no_program(attempt: StoredAttempt) -> str:
    """The words of the server, or what was seen in the text; and what to do about a limit of tokens."""
    if attempt.extraction is None or attempt.extraction.candidate is not None:
        return ""
    cut = attempt.status is Status.TRUNCATED and attempt.response is not None
    hint = cut_hint(attempt.response, attempt.run.sampling) if cut and attempt.response is not None else ""
    return "; ".join(filter(None, (attempt.extraction.reason, hint)))


def _print_prompt(attempt: StoredAttempt, console: Console) -> None:
    prompt = attempt.prompt
    if prompt is None:
        print_words(console, "No prompt: the candidate was given as a file.")
        return
    for role, text in prompt.turns:
        print_words(console, f"[{role}]", "bold")
        _print_long(console, text, attempt, "--prompt")


def _print_long(console: Console, text: str, attempt: StoredAttempt, alone: str) -> None:
    print_words(console, text[:MOST_SHOWN])
    if len(text) > MOST_SHOWN:
        more = counted(len(text) - MOST_SHOWN, "character")
        print_words(console, f"[{more} left out: kernelproof show {attempt.id} {alone}]", "bold")


def _print_response(attempt: StoredAttempt, console: Console) -> None:
    if not attempt.responses:
        print_words(console, "No response is stored.")
    for stored in attempt.responses:
        response = stored.response
        if response is None:
            print_words(console, f"[provider error] {stored.error}", "red")
            continue
        print_facts(console, response_facts(stored, response))
        if response.reasoning:
            print_words(console, "[reasoning]", "bold")
            _print_long(console, response.reasoning, attempt, "--json")
        print_words(console, "[answer]", "bold")
        _print_long(console, response.text or "(none)", attempt, "--response")


def response_facts(stored: StoredResponse, response: Response) -> dict[str, str]:
    """Name and fact; empty where the server did not say."""
    return {
        "served model": response.served_model or "",
        "finish reason": response.finish_reason or "",
        "refusal": (response.refusal or "")[:MOST_SHOWN],
        "tokens": _tokens(response.usage) if response.usage else "",
        "cost": dollars(response.cost_usd) if response.cost_usd is not None else "",
        "latency": f"{response.latency_s:.2f} s" if response.latency_s is not None else "",
        "request id": response.request_id or "",
        "taken from": "an equal question of another run" if stored.reused else "",
    }


def _tokens(usage: Usage) -> str:
    """`120 for the prompt (100 cached), 300 for the answer (200 reasoning)`; what is unknown is left out."""
    sides = (
        (usage.prompt_tokens, "for the prompt", usage.cached_tokens, "cached"),
        (usage.completion_tokens, "for the answer", usage.reasoning_tokens, "reasoning"),
    )
    return ", ".join(
        f"{count:,} {what}" + (f" ({part:,} {named})" if part is not None else "")
        for count, what, part, named in sides
        if count is not None
    )


def _print_extraction(attempt: StoredAttempt, console: Console) -> None:
    extraction = attempt.extraction
    if extraction is None:
        print_words(console, "Nothing was extracted yet.")
        return
    facts = {
        "method": extraction.method,
        "status": extraction.status or "",
        "reason": extraction.reason,
        "warnings": ", ".join(extraction.warnings),
        "characters": "{} to {}".format(*extraction.span) if extraction.span else "",
        "sha256": extraction.candidate.sha256 if extraction.candidate else "",
    }
    print_facts(console, facts)
    if attempt.source is None:
        print_words(console, "No program was extracted.")
    else:
        _print_long(console, attempt.source, attempt, "--source")


def _print_log(attempt: StoredAttempt, console: Console) -> None:
    found = builds_of(_verification(attempt))
    if not found:
        print_words(console, "Nothing was built.")
    for head, commands, log in found:
        print_words(console, head, "bold")
        for command in commands:
            print_words(console, f"$ {command}", "dim")
        _print_long(console, log, attempt, "--log")


def builds_of(verification: Verification | None) -> list[tuple[str, tuple[str, ...], str]]:
    """Each build that differs from the others: its state, its commands and their output."""
    if verification is None:
        return []
    once = {(build.key, build.state, build.log): build for build in reversed(verification.builds)}
    found = []
    for build in reversed(once.values()):
        times = sum((build.key, build.log) == (other.key, other.log) for other in verification.builds)
        how = (
            f"{'from the cache' if build.cached else 'compiled'}{f', asked for {times} times' * (times > 1)}"
        )
        route = f"{build.route} headers{f' after {build.fallback!r}' if build.fallback else ''}"
        head = f"[{build.name}: {build.state}, {how}, {route}, {build.duration_s:.1f} s]"
        found.append((head, build.commands, build.log or "(the compilers said nothing)"))
    return found


def _print_environment(attempt: StoredAttempt, console: Console) -> None:
    verification = _verification(attempt)
    if verification is None or verification.environment is None:
        print_words(console, "No process was started.")
    else:
        print_facts(console, environment_facts(verification.environment))
    if verification is not None:
        sandbox = verification.sandbox
        facts = {
            "sandbox": f"tier {sandbox.tier}; {pairs(sandbox.layers)}" if sandbox else "",
            "seeds": pairs(verification.seeds),
            "process": verification.exit or "",
            "stage seconds": pairs(verification.stage_seconds),
            "verifier": verification.verifier,
        }
        print_facts(console, facts)


def environment_facts(environment: Environment) -> dict[str, str]:
    facts = environment.model_dump(exclude={"gpu"}, exclude_none=True)
    if environment.gpu:
        gpu = environment.gpu.model_dump(exclude_none=True)
        facts |= {f"gpu {name}": value for name, value in gpu.items()}
    return {name.replace("_", " "): str(value) for name, value in facts.items()}


def _print_verifications(attempt: StoredAttempt, console: Console) -> None:
    if not attempt.verifications:
        print_words(console, "No verification is stored.")
        return
    print_table(console, VERIFICATION_COLUMNS, verification_lines(attempt))


def verification_lines(attempt: StoredAttempt) -> Iterator[tuple[str, ...]]:
    for stored in attempt.verifications:
        v = stored.verification
        speedup = times(v.measurement.speedup) if v.measurement else ""
        device = v.environment.device_name if v.environment else ""
        note = _note(attempt, stored)
        yield str(stored.id), stored.kind, v.status, speedup, device, stored.created, note


def _note(attempt: StoredAttempt, stored: StoredVerification) -> str:
    if stored.retracted is not None:
        return f"retracted: {stored.retracted}"
    counts = "counts" if stored == attempt.verdict else ""
    again = f"repeats verification {stored.reused_from}" if stored.reused_from is not None else ""
    return "; ".join(filter(None, (counts, again)))


def _verification(attempt: StoredAttempt) -> Verification | None:
    """The verification that counts, else the newest."""
    if attempt.verdict is not None:
        return attempt.verdict.verification
    return attempt.verifications[-1].verification if attempt.verifications else None


_SECTIONS: tuple[tuple[str, Callable[[StoredAttempt, Console], None]], ...] = (
    ("prompt", _print_prompt),
    ("response", _print_response),
    ("source", _print_extraction),
    ("build log", _print_log),
    ("checks", print_checks),
    ("environment", _print_environment),
    ("verifications", _print_verifications),
)


DEFAULT_ROWS = 24  # where the terminal does not know


def page(text: str) -> None:
    """Prints `text`, which must be clean; on a terminal that is too small for it through a pager.

    The pager is `$PAGER`, else less. An empty `$PAGER`, or `cat`, means none.
    """
    command = _pager() if sys.stdout.isatty() else []
    if not command or text.count("\n") < _rows():
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    # As git has it: one screen is printed, colours are shown, and what was read stays on the screen.
    environment = {"LESS": "FRX", **os.environ}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    except OSError:  # it is not installed, or misspelt
        sys.stdout.write(text)
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the pager
    try:
        pager.communicate(text.encode("utf-8", "replace"))  # it may end before it has read all
    finally:
        pager.wait()
        signal.signal(signal.SIGINT, before)


def _rows() -> int:
    """The terminal's own figure: `$LINES` may be what another terminal had."""
    return os.get_terminal_size(sys.stdout.fileno()).lines or DEFAULT_ROWS


def _pager() -> list[str]:
    try:
        chosen = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # quotes that do not match
        return []
    return [] if chosen == ["cat"] else chosen
