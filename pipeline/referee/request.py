"""What the orchestrator asks of a referee."""

from __future__ import annotations

from pipeline.nouns import Problem, VerifySettings
from pipeline.nouns.base import Noun


class VerifyRequest(Noun):
    """One candidate to judge."""

    problem: Problem
    source: str
    """The candidate's source."""
    settings: VerifySettings
    device: str
    """`cuda:0` or `cpu`."""
