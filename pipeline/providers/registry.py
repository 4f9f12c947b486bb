"""The registry of providers: `@provider("KIND")` above a class makes `KIND:REST` a model."""

from __future__ import annotations

from typing import Protocol

from pipeline.providers.base import Provider, ProviderOptions
from pipeline.registry import Registry


class ProviderClass(Protocol):
    """What a registered class is called with."""

    def __call__(self, rest: str, options: ProviderOptions) -> Provider:
        """`rest` is what follows `KIND:`, never empty. Raises UsageError for what makes no sense,
        ProviderFatal when a key is missing.
        """
        ...


PROVIDERS: Registry[ProviderClass] = Registry(
    "provider", package="pipeline.providers", needs=("ask", "turns", "aclose")
)
provider = PROVIDERS.register
"""The decorator: `@provider("openai")`."""
