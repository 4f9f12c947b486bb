"""Verifications that end before a referee has seen the candidate."""

from __future__ import annotations

from datetime import UTC, datetime

from kernelproof.hashing import sha256_text
from kernelproof.types import Finding, Problem, Status, Verification, VerifySettings
from kernelproof.verifier.engine.prebuild import Prebuilt
from kernelproof.version import VERIFIER


class Record:
    """Makes verifications that ended before a referee saw the candidate."""

    def __init__(self, source: str, problem: Problem, settings: VerifySettings) -> None:
        self.source, self.problem, self.settings = source, problem, settings

    def ended(
        self,
        status: Status,
        reason: str,
        findings: tuple[Finding, ...] = (),
        prebuilt: Prebuilt | None = None,
        details: str = "",
    ) -> Verification:
        return Verification(
            status=status,
            reason=reason,
            problem_id=self.problem.id,
            problem_sha256=self.problem.sha256,
            candidate_sha256=sha256_text(self.source),
            settings=self.settings,
            findings=findings,
            builds=prebuilt.builds if prebuilt else (),
            sandbox=prebuilt.sandbox if prebuilt else None,
            details=details[:20_000],
            verifier=VERIFIER,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
