"""kernelproof: asks language models for kernels and proves which are right and how fast they are.

`from pipeline import verify` is the whole tool for one candidate; docs/python.md shows it.
"""

from __future__ import annotations

from typing import Any

from pipeline.version import __version__

__all__ = ["__version__", "verify"]


def __getattr__(name: str) -> Any:
    """Loads `verify` when it is first asked for: this package is also imported inside the sandbox."""
    if name == "verify":
        from pipeline.api import verify

        return verify
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
