"""One candidate from a file: verified, and kept as an attempt of a run of kind `verify`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from db.store import Store
from pipeline.engine.engine import Engine
from pipeline.engine.referee_process import OnStage
from pipeline.runs.candidates import Given
from pipeline.types import Extraction, Problem, RunSettings, Status, Verification, VerifySettings

FILE_MODEL = "file"
"""What the leaderboard calls the author of candidates given as files."""


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
    verify: Callable[[Engine, str, Problem, VerifySettings, OnStage], Verification] = Engine.verify,
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


def run_of(settings: VerifySettings, label: str | None) -> RunSettings:
    """The run that keeps candidates given as files, verified with these settings."""
    return RunSettings(name=label, kind="verify", model=FILE_MODEL, verify=settings)
