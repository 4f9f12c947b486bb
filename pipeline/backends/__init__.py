"""The backends: one module each, which defines `BACKEND`. Packages outside add one by an entry point.

[project.entry-points."kernelproof.backends"]
mine = "my_package.my_module:BACKEND"
"""

from __future__ import annotations

import functools
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules

from pipeline.backends.base import Backend, Device, Timing
from pipeline.errors import UsageError

GROUP = "kernelproof.backends"

__all__ = ["Backend", "Device", "Timing", "all_backends", "backend", "names"]


@functools.cache
def all_backends() -> dict[str, Backend]:
    """All backends by name, the preferred ones first."""
    modules = [found.name for found in iter_modules(__path__) if found.name != "base"]
    found = [import_module(f"{__name__}.{module}").BACKEND for module in modules]
    found += [point.load() for point in entry_points(group=GROUP)]
    return {each.name: each for each in sorted(found, key=lambda each: each.order)}


def names() -> tuple[str, ...]:
    """Their names."""
    return tuple(all_backends())


def backend(name: str) -> Backend:
    """The backend of this name. Raises UsageError naming those that there are."""
    try:
        return all_backends()[name]
    except KeyError:
        raise UsageError(f"no backend {name!r}; there are: {', '.join(names())}") from None
