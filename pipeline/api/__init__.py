"""kernelproof from Python: `from kernelproof import verify`, `Verifier` for many candidates, and `Scorer` for
searches that another program leads.

Begin with `verifier`. `judging` turns arguments into problems and settings and holds engine and store;
`results` is what callers get.
"""

from kernelproof.api.results import CandidateLike, Result, Results, Submission, Ticket
from kernelproof.api.scorer import Score, Scorer
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
