"""Checks of a verification with their evidence, and findings of the static policy."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from kernelproof.types.record import FrozenRecord
from kernelproof.types.status import Status


class CheckOutcome(StrEnum):
    """`not_applicable` says that the check had nothing to look at; the reason is in `seen`."""

    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "not_applicable"


class Check(FrozenRecord):
    """What was asked, what was seen, and the figures."""

    name: str
    """Stable name: `output_values`, `inputs_unchanged`, `host_clock` ..."""
    outcome: CheckOutcome
    asked: str
    """The question, in one sentence."""
    seen: str
    """The answer, in one sentence with its figures."""
    figures: dict[str, Any] = Field(default_factory=dict)
    """The same for machines: JSON values only."""


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
