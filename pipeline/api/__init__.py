"""kernelproof from Python: `from kernelproof import verify`, `Verifier` for many candidates, and `Scorer` for
searches that another program leads."""

from kernelproof.api.scorer import Score, Scorer
from kernelproof.api.verifier import CandidateLike, Result, Results, Submission, Verifier, verify

__all__ = [
    "CandidateLike",
    "Result",
    "Results",
    "Score",
    "Scorer",
    "Submission",
    "Verifier",
    "verify",
]
