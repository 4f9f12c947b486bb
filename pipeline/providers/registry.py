"""The registry of providers: `@provider("KIND")` above a class makes `KIND:REST` a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from kernelproof.providers.base import Provider, ProviderOptions
from kernelproof.registry import Registry, class_with


class ProviderClass(Protocol):
    """What a registered class is called with."""

    def __call__(self, rest: str, options: ProviderOptions, /) -> Provider:
        """`rest` is what follows `KIND:`, never empty. Raises UsageError for what makes no sense,
        ProviderFatal when a key is missing.
        """
        ...


P = TypeVar("P", bound=ProviderClass)

PROVIDERS: Registry[ProviderClass] = Registry(
    "provider",
    group="kernelproof.providers",
    package="kernelproof.providers",
    check=class_with("ask", "turns", "aclose"),
)


def provider(kind: str) -> Callable[[P], P]:
    """The decorator that registers a provider's class: `@provider("openai")`."""

    def registered(cls: P) -> P:
        PROVIDERS.add(kind, cls)
        return cls

    return registered
