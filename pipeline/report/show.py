"""One attempt on screen: what was asked, answered, built, checked and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from rich.console import Console

from db.views import StoredAttempt, StoredVerification
from pipeline.report.layout import cell, pairs, plain_table, print_facts, print_words
from pipeline.report.verification import print_verification, rules
from pipeline.types import Environment, Prompt, Status, Verification

Part = Literal["prompt", "response", "source", "log", "checks", "all"]


def print_attempt(attempt: StoredAttempt, console: Console, part: Part = "all") -> None:
    """The whole attempt, or one part of it without headings around it.

    Texts of models and compilers are printed with control characters taken out.
    """
    if part == "all":
        _print_summary(attempt, console)
        for title, section in _SECTIONS:
            print_words(console, f"\n== {title} ==", "bold")
            section(attempt, console)
    else:
        _PARTS[part](attempt, console)


def _print_summary(attempt: StoredAttempt, console: Console) -> None:
    key, run = attempt.key, attempt.run
    print_words(
        console, f"Attempt #{attempt.id}: {key.problem_id}, sample {key.sample}, turn {key.turn}", "bold"
    )
    for alteration in attempt.alterations:
        print_words(console, f"ALTERED: {alteration}", "bold red")
    verdict = attempt.verdict
    status = verdict.verification.status if verdict else attempt.status
    facts = {
        "status": "in progress" if status is None else f"{status}: {status.meaning}",
        "reason": verdict.verification.reason if verdict else "",
        "model": run.model,
        "run": f"{attempt.run_id} {run.name or ''}".strip(),
        "backend, size": f"{run.verify.backend}, {run.verify.size}",
        "strategy": run.strategy or "",
        "rules": rules(run.verify),
        "problem": f"{attempt.problem.summary or attempt.problem.name} (sha256 {key.problem_sha256[:12]})",
        "repairs": f"#{attempt.parent_id}" if attempt.parent_id else "",
        "begun": attempt.created,
        "finished": attempt.finished or "",
    }
    print_facts(console, facts, style="green" if status is Status.CORRECT else "")


def _print_prompt(attempt: StoredAttempt, console: Console) -> None:
    prompt = attempt.prompt
    if prompt is None:
        print_words(console, "No prompt: the candidate was given as a file.")
        return
    for role, text in _turns(prompt):
        print_words(console, f"[{role}]", "bold")
        print_words(console, text)


def _turns(prompt: Prompt) -> Iterable[tuple[str, str]]:
    return (("system", prompt.system), *prompt.history, ("user", prompt.user))


def _print_response(attempt: StoredAttempt, console: Console) -> None:
    if not attempt.responses:
        print_words(console, "No response is stored.")
    for stored in attempt.responses:
        response = stored.response
        if response is None:
            print_words(console, f"[provider error] {stored.error}", "red")
            continue
        usage = response.usage.model_dump(exclude_none=True) if response.usage else {}
        facts = {
            "served model": response.served_model or "",
            "finish reason": response.finish_reason or "",
            "usage": ", ".join(f"{name} {count}" for name, count in usage.items()),
            "latency": f"{response.latency_s:.2f} s" if response.latency_s is not None else "",
            "request id": response.request_id or "",
            "refusal": response.refusal or "",
        }
        print_facts(console, facts)
        if response.reasoning:
            print_words(console, "[reasoning]", "bold")
            print_words(console, response.reasoning)
        print_words(console, "[answer]", "bold")
        print_words(console, response.text or "(none)")


def _print_source(attempt: StoredAttempt, console: Console) -> None:
    print_words(console, attempt.source if attempt.source is not None else "No program was extracted.")


def _print_extraction(attempt: StoredAttempt, console: Console) -> None:
    extraction = attempt.extraction
    if extraction is None:
        print_words(console, "Nothing was extracted yet.")
        return
    facts = {
        "method": extraction.method,
        "status": extraction.status or "",
        "warnings": ", ".join(extraction.warnings),
        "characters": "{} to {}".format(*extraction.span) if extraction.span else "",
        "sha256": extraction.candidate.sha256 if extraction.candidate else "",
    }
    print_facts(console, facts)
    _print_source(attempt, console)


def _print_log(attempt: StoredAttempt, console: Console) -> None:
    verification = _verification(attempt)
    if verification is None or not verification.builds:
        print_words(console, "Nothing was built.")
        return
    once = {(build.key, build.state, build.log): build for build in reversed(verification.builds)}
    for build in reversed(once.values()):
        times = sum((build.key, build.log) == (other.key, other.log) for other in verification.builds)
        how = (
            f"{'from the cache' if build.cached else 'compiled'}{f', asked for {times} times' * (times > 1)}"
        )
        route = f"{build.route} headers{f' after {build.fallback!r}' if build.fallback else ''}"
        told = f"[{build.name}: {build.state}, {how}, {route}, {build.duration_s:.1f} s]"
        print_words(console, told, "bold")
        for command in build.commands:
            print_words(console, f"$ {command}", "dim")
        print_words(console, build.log or "(the compilers said nothing)")


def _print_checks(attempt: StoredAttempt, console: Console) -> None:
    verification = _verification(attempt)
    if verification is None:
        print_words(console, "No verification is stored.")
        return
    print_verification(verification, console)


def _print_environment(attempt: StoredAttempt, console: Console) -> None:
    verification = _verification(attempt)
    if verification is None or verification.environment is None:
        print_words(console, "No process was started.")
    else:
        print_facts(console, _environment_facts(verification.environment))
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


def _environment_facts(environment: Environment) -> dict[str, str]:
    facts = environment.model_dump(exclude={"gpu"}, exclude_none=True)
    if environment.gpu:
        gpu = environment.gpu.model_dump(exclude_none=True)
        facts |= {f"gpu {name}": value for name, value in gpu.items()}
    return {name.replace("_", " "): str(value) for name, value in facts.items()}


def _print_verifications(attempt: StoredAttempt, console: Console) -> None:
    if not attempt.verifications:
        print_words(console, "No verification is stored.")
        return
    table = plain_table("verification", "kind", "status", "speedup", "device", "made", "note")
    for stored in attempt.verifications:
        v = stored.verification
        speedup = f"{v.measurement.speedup:.3f}" if v.measurement else ""
        device = v.environment.device_name if v.environment else ""
        cells = (
            str(stored.id),
            stored.kind,
            v.status,
            speedup,
            device,
            stored.created,
            _note(attempt, stored),
        )
        table.add_row(*map(cell, cells))
    console.print(table)


def _note(attempt: StoredAttempt, stored: StoredVerification) -> str:
    if stored.retracted is not None:
        return f"retracted: {stored.retracted}"
    return "counts" if stored == attempt.verdict else ""


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
    ("checks", _print_checks),
    ("environment", _print_environment),
    ("verifications", _print_verifications),
)

_PARTS: dict[str, Callable[[StoredAttempt, Console], None]] = {
    "prompt": _print_prompt,
    "response": _print_response,
    "source": _print_source,
    "log": _print_log,
    "checks": _print_checks,
}
