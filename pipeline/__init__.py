"""kernelproof: asks language models for kernels and proves which are right and how fast they are.

`from kernelproof import verify` verifies one candidate, `Verifier` many: docs/guide/python.md. `Scorer` gives
scores to another program's search: docs/guide/search-with-other-tools.md.
"""

from __future__ import annotations

from typing import Any

from kernelproof.version import __version__

__all__ = ["Result", "Score", "Scorer", "Submission", "Ticket", "Verifier", "__version__", "verify"]


def __getattr__(name: str) -> Any:
    """Loads the others when they are first asked for: this package is also imported inside the sandbox."""
    if name in ("Result", "Score", "Scorer", "Submission", "Ticket", "Verifier", "verify"):
        from kernelproof import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
