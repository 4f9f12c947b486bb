"""Small nouns for tests of the store; all figures are made up."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from kernelproof.db.reported import Imported
from kernelproof.db.store import Store, open_store
from kernelproof.hashing import sha256_text
from kernelproof.types import (
    AttemptKey,
    Build,
    BuildState,
    Candidate,
    Ceilings,
    Check,
    CheckOutcome,
    Environment,
    ErrorClass,
    Extraction,
    Flag,
    Interval,
    Measurement,
    Pace,
    Problem,
    Prompt,
    Reproduction,
    ReproductionFinding,
    Response,
    Roofline,
    RunSettings,
    Status,
    Usage,
    Verification,
    VerifySettings,
)
from kernelproof.types.reproduction import ReportedResult
from kernelproof.version import VERIFIER

SOURCE = "class ModelNew: ..."
CPP_SMALL = VerifySettings(backend="cpp", size="small")


def new_store(workspace: Path, empty_database: Path) -> Store:
    """The store of a workspace, open: a copy of the empty one."""
    path = workspace / "db" / "attempts.sqlite"
    path.parent.mkdir(parents=True)
    shutil.copy(empty_database, path)
    return open_store(path, create=False)


def problem(number: int = 1, level: int = 1, source: str | None = None) -> Problem:
    text = source or f"class Model: ...  # level {level}, number {number}"
    return Problem(
        id=f"level{level}/{number}",
        suite="kernelproof",
        name="softmax",
        level=level,
        source=text,
        sha256=sha256_text(text),
        summary="Softmax over the last dimension.",
    )


def settings(
    model: str = "replay:a.jsonl", verify: VerifySettings = CPP_SMALL, name: str | None = None
) -> RunSettings:
    return RunSettings(model=model, template="basic-v1", template_sha256="0" * 64, verify=verify, name=name)


def key(of: Problem, sample: int = 0, turn: int = 1) -> AttemptKey:
    return AttemptKey(problem_id=of.id, problem_sha256=of.sha256, sample=sample, turn=turn)


def prompt(user: str = "Rewrite Model.") -> Prompt:
    return Prompt(
        template="basic-v1",
        template_sha256="0" * 64,
        system="You write kernels.",
        user=user,
        history=(("user", "first"), ("assistant", "second")),
        sha256=sha256_text(user),
    )


def response(text: str = f"```python\n{SOURCE}\n```") -> Response:
    return Response(
        text=text,
        reasoning="hm",
        finish_reason="stop",
        usage=Usage(prompt_tokens=10, completion_tokens=20),
        request_id="r-1",
        served_model="served",
        latency_s=1.5,
        raw={"choices": [{"message": {"content": text}}]},
    )


def extraction(source: str = SOURCE) -> Extraction:
    candidate = Candidate(source=source, sha256=sha256_text(source))
    return Extraction(candidate=candidate, method="fence", span=(10, 29))


def environment(device: str = "Test CPU") -> Environment:
    return Environment(
        kernelproof="0.1.0",
        python="3.11.7",
        torch="2.13.0",
        platform="Linux",
        cpu=device,
        cores=2,
        memory_bytes=8 << 30,
        host_sha256="1" * 64,
    )


def measurement(speedup: float) -> Measurement:
    return Measurement(
        candidate_ms=1.0 / speedup,
        baseline_ms=1.0,
        speedup=speedup,
        speedup_interval=Interval(low=speedup * 0.99, high=speedup * 1.01),
        pace=Pace.FASTER if speedup > 1 else Pace.SLOWER,
        resolution=0.01,
        aa_spread=0.002,
        host_ms=1.0 / speedup,
        overhead_ms=0.01,
        flush_bytes=0,
        slots=4,
        candidate_samples_ms=((1.0 / speedup,),),
        baseline_samples_ms=((1.0,),),
        order=("BC",),
        clocks_before={"load_1min": 0.5},
    )


def roofline(fraction: float = 0.5, operations: int = 100_000) -> Roofline:
    """Twelve bytes moved in 0.1 ms; the operations take twice as long."""
    return Roofline(
        bytes_read=8,
        bytes_written=4,
        bytes_needed=8,
        operations=operations,
        memory_ms=0.1,
        compute_ms=operations / 5e8 * 1e3,
        needed_ms=0.1,
        fraction=fraction,
        ceilings=Ceilings(
            bytes_per_s=1.2e5,
            operations_per_s=5e8,
            cache_bytes=0,
            aa_spread=0.01,
            measured="2026-01-01T00:00:00+00:00",
        ),
    )


def verification(
    of: Problem,
    status: Status = Status.CORRECT,
    speedup: float | None = None,
    device: str | None = "Test CPU",
    verify: VerifySettings = CPP_SMALL,
    flags: tuple[Flag, ...] = (),
    error_class: ErrorClass | None = None,
) -> Verification:
    return Verification(
        status=status,
        reason="because",
        problem_id=of.id,
        problem_sha256=of.sha256,
        candidate_sha256=sha256_text(SOURCE),
        settings=verify,
        environment=environment(device) if device else None,
        builds=(Build(key="k", state=BuildState.OK, name="ext", log="warning: unused", commands=("c++ x",)),),
        checks=(Check(name="output_values", outcome=CheckOutcome.PASS, asked="Equal?", seen="Yes."),),
        measurement=measurement(speedup) if speedup is not None else None,
        seeds={"inputs": 2**63 + 1},
        flags=flags,
        error_class=error_class,
        verifier=VERIFIER,
        created="2026-01-01T00:00:00+00:00",
    )


def reproduction(
    attempt: int, finding: ReproductionFinding = ReproductionFinding.SAME, verification_id: int | None = None
) -> Reproduction:
    return Reproduction(
        attempt_id=attempt,
        finding=finding,
        reason="because",
        alterations=(),
        differences={},
        then=None,
        now=None,
        verification_id=verification_id,
    )


def begin(store: Store, of: Problem, run: RunSettings, sample: int = 0, turn: int = 1) -> int:
    """An attempt in progress."""
    store.add_problem(of)
    return store.begin_attempt(store.begin_run(run), key(of, sample, turn), prompt())


def judge(
    store: Store,
    of: Problem,
    run: RunSettings,
    status: Status = Status.CORRECT,
    speedup: float | None = None,
    *,
    sample: int = 0,
    turn: int = 1,
    device: str = "Test CPU",
    flags: tuple[Flag, ...] = (),
    error_class: ErrorClass | None = None,
) -> tuple[int, int]:
    """A finished attempt with one verification; their ids."""
    attempt = begin(store, of, run, sample, turn)
    store.record_response(attempt, response())
    store.record_extraction(attempt, extraction())
    judged = verification(of, status, speedup, device, run.verify, flags, error_class)
    verification_id = store.record_verification(attempt, judged)
    store.finish_attempt(attempt, status)
    return attempt, verification_id


def imported(source: str = "a.py", text: str | None = None, **claim: Any) -> Imported:
    """An imported program. `claim`: fields of what is reported of it."""
    program = extraction(text) if text is not None else extraction()
    assert program.candidate is not None
    answer = Response(text=program.candidate.source)
    report = ReportedResult(source=source, said_in="eval_results.json" if claim else None, **claim)
    return Imported(problem(), answer, program, report)
