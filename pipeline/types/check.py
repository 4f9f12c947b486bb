"""One check of a verification, with its evidence."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from kernelproof.types.base import FrozenRecord


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
