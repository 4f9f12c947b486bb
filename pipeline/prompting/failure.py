"""What the last turn came to, for the repair prompt: a failure, or a right answer that is too slow."""

from __future__ import annotations

from kernelproof.analysis.analyse import Analysis, analyse
from kernelproof.types import (
    BuildState,
    Check,
    ErrorStatistics,
    Extraction,
    Finding,
    FrozenRecord,
    Kernels,
    Measurement,
    Status,
    Verification,
)


class Failure(FrozenRecord):
    """The evidence a model gets about its last answer. With status `correct` it is asked for speed."""

    status: Status
    reason: str = ""
    """One sentence: what was seen."""
    build_log: str = ""
    """Output of the builds that failed, untrimmed; the same output once."""
    details: str = ""
    """Traceback or process output."""
    findings: tuple[Finding, ...] = ()
    errors: tuple[ErrorStatistics, ...] = ()
    checks: tuple[Check, ...] = ()
    measurement: Measurement | None = None
    kernels: Kernels | None = None
    """What ran in one traced call of a correct program."""
    analysis: Analysis | None = None
    """The bottleneck of a correct program, and the resources of its kernels."""
    repeated: bool = False
    """Whether an earlier answer of the sample held the same program."""

    @classmethod
    def from_verification(cls, verification: Verification, *, repeated: bool = False) -> Failure:
        """The failure (or slow success) that a verification shows."""
        failed = [build for build in verification.builds if build.state is not BuildState.OK]
        return cls(
            status=verification.status,
            reason=verification.reason,
            build_log="\n".join(dict.fromkeys(build.log for build in failed if build.log)),
            details=verification.details,
            findings=verification.findings,
            errors=verification.errors,
            checks=verification.checks,
            measurement=verification.measurement,
            kernels=verification.kernels if verification.status is Status.CORRECT else None,
            analysis=analyse(verification) if verification.status is Status.CORRECT else None,
            repeated=repeated,
        )

    @classmethod
    def from_extraction(cls, extraction: Extraction) -> Failure:
        """The failure to find a program in a response. Raises ValueError when one was found."""
        if extraction.status is None:
            raise ValueError("the extraction found a candidate; a failure needs its verification")
        return cls(status=extraction.status, reason=extraction.reason or "; ".join(extraction.warnings))
