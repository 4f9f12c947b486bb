"""What the orchestrator asks of a referee."""

from __future__ import annotations

from pipeline.types import Problem, VerifySettings
from pipeline.types.base import FrozenRecord


class VerifyRequest(FrozenRecord):
    """One candidate to judge."""

    problem: Problem
    source: str
    """The candidate's source."""
    settings: VerifySettings
    device: str
    """`cuda:0` or `cpu`."""
