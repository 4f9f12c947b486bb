"""kernelproof from Python: `from kernelproof import verify`, `Verifier` for many candidates, and `Scorer` for
searches that another program leads.

Begin with `verifier`. `judging` holds its engine and store, `rules` turns arguments into
settings, `results` is what callers get, `ticket` a candidate on its way.
"""

from kernelproof.api.results import CandidateLike, Result, Results, Submission
from kernelproof.api.scorer import Score, Scorer
from kernelproof.api.ticket import Ticket
from kernelproof.api.verifier import Verifier, verify

__all__ = [
    "CandidateLike",
    "Result",
    "Results",
    "Score",
    "Scorer",
    "Submission",
    "Ticket",
    "Verifier",
    "verify",
]
