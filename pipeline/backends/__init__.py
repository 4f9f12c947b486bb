"""The backends: one module each, which defines `BACKEND`. Packages outside add one by an entry point.

[project.entry-points."kernelproof.backends"]
mine = "my_package.my_module:BACKEND"
"""

from __future__ import annotations

from kernelproof.backends.interface import Backend, Device, FirstCall, Inside, Timing, Words
from kernelproof.registry import Registry

__all__ = [
    "BACKENDS",
    "Backend",
    "Device",
    "FirstCall",
    "Inside",
    "Timing",
    "Words",
    "backend",
    "names",
    "our_backends",
    "preferred",
]


def _wrong(name: str, value: object) -> str | None:
    if not isinstance(value, Backend):
        return "is no Backend"
    return None if value.name == name else f"calls itself {value.name!r}; give both the same name"


BACKENDS: Registry[Backend] = Registry(
    "backend",
    group="kernelproof.backends",
    package=__name__,
    check=_wrong,
    attribute="BACKEND",
    rank=lambda backend: backend.order,
)


def our_backends() -> tuple[Backend, ...]:
    """Those of this package, the preferred ones first."""
    return tuple(BACKENDS.ours().values())


def names() -> tuple[str, ...]:
    """All names: ours as above, then those of other packages, which are not imported for that."""
    return BACKENDS.names()


def backend(name: str) -> Backend:
    """The backend of this name. Raises UsageError naming those that there are, or why it cannot be loaded."""
    return BACKENDS.find(name)


def preferred() -> str:
    """The name of the first of ours: the default where no device has to be there."""
    return our_backends()[0].name
