"""One candidate from a file: verified, and kept as an attempt of a run of kind `verify`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from db.store import Store
from pipeline.execution.engine import Engine
from pipeline.execution.referee_process import OnStage
from pipeline.extraction import extract_source
from pipeline.nouns import (
    Extraction,
    Problem,
    Response,
    RunSettings,
    Status,
    Verification,
    VerifySettings,
)

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


def verify_text(
    text: str,
    problem: Problem,
    settings: VerifySettings,
    engine: Engine,
    *,
    store: Store | None = None,
    label: str | None = None,
    on_stage: OnStage = lambda _: None,
) -> Verified:
    """Verifies a candidate's source or a raw response. With a store, keeps it as an attempt.

    Raises what `Engine.verify` raises.
    """
    extraction = extract_source(text)
    verification = None
    status = extraction.status or Status.NO_CODE
    if extraction.candidate is not None:
        verification = engine.verify(extraction.candidate.source, problem, settings, on_stage)
        status = verification.status
    done = Verified(extraction, status, verification, None)
    if store is None:
        return done
    run = RunSettings(name=label, kind="verify", model=FILE_MODEL, verify=settings)
    number = store.add_finished(run, problem, Response(text=text), extraction, verification, status)
    return replace(done, attempt_id=number)
