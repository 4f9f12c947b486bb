"""The evidence that a question shows: what the last answer came to, and other attempts of the sample."""

from __future__ import annotations

from kernelproof.analysis.analyse import Analysis, analyse
from kernelproof.extraction import without_thinking
from kernelproof.types import (
    BuildState,
    Check,
    ErrorStatistics,
    Extraction,
    Finding,
    FrozenRecord,
    Kernels,
    Measurement,
    Response,
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


MAX_IDEA = 240
"""Characters of an answer's first sentence that are shown."""


class Shown(FrozenRecord):
    """A correct program that is shown beside the parent."""

    source: str
    measurement: Measurement | None

    @classmethod
    def of(cls, source: str | None, verification: Verification | None) -> Shown:
        """The program of an attempt, with its times."""
        return cls(source=source or "", measurement=verification.measurement if verification else None)


class KnownPlan(FrozenRecord):
    """An earlier plan, and the results of its programs."""

    title: str
    programs: int
    """Answers that carried it out, or went on from such an answer."""
    correct: int
    best: Measurement | None
    """The times of the fastest correct program; None where none was timed."""


class Tried(FrozenRecord):
    """An earlier answer to a question about the same parent."""

    idea: str
    """The answer's words before its code, on one line; empty when there are none."""
    status: Status
    measurement: Measurement | None
    repeated: bool = False
    """Whether its program was an earlier answer's."""

    @classmethod
    def of(cls, response: Response, failure: Failure) -> Tried:
        """An attempt, by its answer and what came of it."""
        return cls(
            idea=_idea(response.text),
            status=failure.status,
            measurement=failure.measurement,
            repeated=failure.repeated,
        )


def _idea(text: str | None) -> str:
    """The first words of an answer, without its thinking and its code."""
    said = without_thinking(text or "").partition("```")[0]
    line = next((line.strip() for line in said.splitlines() if line.strip(" #*-")), "")
    # It stands on a line of its own in a list: nothing in it may look like a fence or a heading.
    return line.replace("`", "'").lstrip("#*- ")[:MAX_IDEA].encode("utf-8", "replace").decode("utf-8")
