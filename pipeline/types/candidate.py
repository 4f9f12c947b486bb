"""A candidate: source text that claims to define ModelNew, and how it was found in a response."""

from __future__ import annotations

from kernelproof.types.base import FrozenRecord
from kernelproof.types.status import Status


class Candidate(FrozenRecord):
    """The source of one candidate."""

    source: str
    sha256: str
    """SHA-256 of `source`."""


class Extraction(FrozenRecord):
    """The result of looking for a candidate in a response. Never a raised error: either code or a status."""

    candidate: Candidate | None
    """The program found, or None."""
    status: Status | None = None
    """Why there is none: refused, filtered, truncated, empty or no_code. None when a candidate was found."""
    reason: str = ""
    """The same in words, the server's own among them: its refusal, its finish reason. Empty when a candidate
    was found, and in what earlier versions stored."""
    method: str
    """How it was found: `whole` (the text is the program), `fence`, `lenient_fence`, `bare` or `json`; `diff`
    (changes of the program that the question showed); `none` when there is none.
    Earlier versions said `file` for `whole`."""
    warnings: tuple[str, ...] = ()
    """What was odd about the response: `unclosed_fence` ...; docs/rationale/extraction.md lists them."""
    span: tuple[int, int] | None = None
    """Start and end character of the code in the response's text, before normalisation, where known."""
