"""Other attempts of a sample, as a question shows them: programs to learn from, and what was tried before."""

from __future__ import annotations

from kernelproof.extraction import without_thinking
from kernelproof.prompting.failure import Failure
from kernelproof.types import FrozenRecord, Measurement, Response, Status, Verification

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
