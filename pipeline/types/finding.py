"""A static finding about a candidate's source."""

from __future__ import annotations

from enum import StrEnum

from kernelproof.types.base import FrozenRecord
from kernelproof.types.status import Status


class Severity(StrEnum):
    """`error` ends the attempt with the rule's status; `warning` and `note` inform."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class Finding(FrozenRecord):
    """One rule that matched, with its evidence."""

    rule: str
    """The rule's name: `forbidden_import`, `missing_model_new` ..."""
    severity: Severity
    message: str
    """What is wrong and what a candidate should do instead."""
    line: int | None = None
    """1-based line in the candidate's source."""
    evidence: str = ""
    """The source text that matched, at most 200 characters."""
    status: Status | None = None
    """For severity error: the status the attempt ends with."""
