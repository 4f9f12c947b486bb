"""One candidate from a file: verified, and kept as an attempt of a run of kind `verify`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from kernelproof.db.store import Store
from kernelproof.engine.engine import Engine
from kernelproof.engine.referee_process import OnStage
from kernelproof.extraction import extract
from kernelproof.runs.candidates import Given
from kernelproof.types import (
    Extraction,
    Problem,
    Response,
    RunSettings,
    Status,
    Verification,
    VerifySettings,
)
from kernelproof.version import VERIFIER

FILE_MODEL = "file"
"""What the leaderboard calls the author of candidates given as files."""


Verify = Callable[[Engine, str, Problem, VerifySettings, OnStage], Verification]
"""`Engine.verify`, or what asks it more than once."""


@dataclass(frozen=True)
class Verified:
    """What came of one file."""

    extraction: Extraction
    status: Status
    verification: Verification | None
    """None when the file holds no candidate."""
    attempt_id: int | None
    """None when nothing was stored."""


def verify_given(
    given: Given,
    settings: VerifySettings,
    engine: Engine,
    *,
    store: Store | None = None,
    label: str | None = None,
    on_stage: OnStage = lambda _: None,
    verify: Verify = Engine.verify,
) -> Verified:
    """Verifies a candidate's source or a raw response. With a store, keeps it as an attempt.

    `verify` asks the engine, once or as often as it likes. Raises what `Engine.verify` raises.
    """
    extraction = given.extraction
    verification = None
    status = extraction.status or Status.NO_CODE
    if extraction.candidate is not None:
        verification = verify(engine, extraction.candidate.source, given.problem, settings, on_stage)
        status = verification.status
    done = Verified(extraction, status, verification, None)
    if store is None:
        return done
    run = run_of(settings, label)
    number = store.add_finished(run, given.problem, given.response, extraction, verification, status)
    return replace(done, attempt_id=number)


def verdict_on(
    text: str, problem: Problem, settings: VerifySettings, engine: Engine, verify: Verify = Engine.verify
) -> Verification:
    """The verification of the program in a text; where there is none, one whose status says so.

    Nothing is stored. Raises what `Engine.verify` raises.
    """
    found = extract(Response(text=text))
    if found.candidate is not None:
        return verify(engine, found.candidate.source, problem, settings, lambda _: None)
    return without_program(found, problem, settings)


def without_program(found: Extraction, problem: Problem, settings: VerifySettings) -> Verification:
    """The verification of a text in which extraction found no program."""
    return Verification(
        status=found.status or Status.NO_CODE,
        reason=found.reason,
        problem_id=problem.id,
        problem_sha256=problem.sha256,
        candidate_sha256=None,
        settings=settings,
        verifier=VERIFIER,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def run_of(settings: VerifySettings, label: str | None) -> RunSettings:
    """The run that keeps candidates given as files, verified with these settings."""
    return RunSettings(name=label, kind="verify", model=FILE_MODEL, verify=settings)
