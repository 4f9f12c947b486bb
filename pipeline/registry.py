"""Registers classes or objects under names: our own from the modules of a folder, those of other packages by
an entry point.

Example: `@provider("openai")` stands above a class in `pipeline/providers/`; `pipeline/backends/cpp.py` holds
its backend as `BACKEND`. A module is found because it lies in that folder: nothing else has to name it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Generic, TypeVar, cast

from kernelproof.errors import UsageError

T = TypeVar("T")
C = TypeVar("C")

Validator = Callable[[str, object], str | None]
"""Says what is wrong with something that is to be registered under this name: `lacks ask`. None: nothing."""


def class_with(*methods: str) -> Validator:
    """The check that something is a class with these methods."""

    def wrong(_: str, found: object) -> str | None:
        if not isinstance(found, type):
            return "is no class"
        missing = [method for method in methods if not callable(getattr(found, method, None))]
        return f"lacks {', '.join(missing)}" if missing else None

    return wrong


@lru_cache(maxsize=16)
def _installed(group: str, _: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points of the packages on a path. To find them, the metadata of all packages are read."""
    return tuple(entry_points(group=group))


class Registry(Generic[T]):
    """The things of one kind, each under its name. Names of our own cannot be taken by another package."""

    def __init__(
        self,
        what: str,
        *,
        group: str,
        package: str,
        check: Validator,
        attribute: str | None = None,
        rank: Callable[[T], int] = lambda _: 0,
    ) -> None:
        """`what` is the kind as messages say it (`provider`), `group` the group of entry points. Modules of
        `package` register our own when they are imported, or hold it as `attribute`, under its `name`. Ours
        are listed by `rank`, those of equal rank by name.
        """
        self._what, self._group, self._package, self._check = what, group, package, check
        self._attribute, self._rank = attribute, rank
        self._found: dict[str, T] = {}
        self._places: dict[str, str] = {}
        """Where each was found, for messages."""
        self._others: set[str] = set()
        """Names that an entry point brought."""
        self._complete = False
        """Whether all of ours are registered."""

    def add(self, name: str, found: T, place: str | None = None) -> None:
        """Registers one that was found at `place`, for a class by default where it is defined.

        Raises UsageError when another one has the name, or when the check finds something wrong.
        """
        place = place or f"{getattr(found, '__module__', '?')}.{getattr(found, '__qualname__', found)}"
        if (wrong := self._check(name, found)) is not None:
            raise UsageError(f"the {self._what} {name!r} ({place}) {wrong}")
        if name in self._found and self._found[name] is not found and self._places[name] != place:
            raise UsageError(
                f"the {self._what} {name!r} is there twice: {self._places[name]}, {place}; rename one"
            )
        self._found[name], self._places[name] = found, place

    def named(self, name: str) -> Callable[[C], C]:
        """The decorator that registers one of ours: `@strategy("refine")`."""

        def registered(found: C) -> C:
            self.add(name, cast(T, found))
            return found

        return registered

    def __contains__(self, name: str) -> bool:
        """Whether one of ours, or an entry point of an installed package, has this name."""
        self._import_ours()
        return name in self._found or any(point.name == name for point in self._points())

    def find(self, name: str) -> T:
        """The one registered as `name`. Packages with entry points are imported only when one is asked for.

        Raises UsageError when there is none (the message lists all names), when two packages have one, or
        when the package cannot be imported.
        """
        self._import_ours()
        if name not in self._found:
            points = tuple(point for point in self._points() if point.name == name)
            if not points:
                raise UsageError(f"no {self._what} {name!r}; there are: {', '.join(self.names())}")
            self._load(points)
        return self._found[name]

    def names(self) -> tuple[str, ...]:
        """All names: ours, then those of entry points, sorted. No other package is imported for them."""
        ours = self.ours()
        others = {point.name for point in self._points()} - ours.keys()
        return (*ours, *sorted(others))

    def ours(self) -> dict[str, T]:
        """All that no entry point brought, by name."""
        self._import_ours()
        ours = {name: found for name, found in self._found.items() if name not in self._others}
        return dict(sorted(ours.items(), key=lambda item: (self._rank(item[1]), item[0])))

    def _points(self) -> tuple[EntryPoint, ...]:
        return _installed(self._group, tuple(sys.path))

    def _import_ours(self) -> None:
        if self._complete:
            return
        package = import_module(self._package)
        for module in iter_modules(package.__path__):
            imported = import_module(f"{self._package}.{module.name}")
            if self._attribute is not None and hasattr(imported, self._attribute):
                ours = getattr(imported, self._attribute)
                self.add(ours.name, ours, f"{imported.__name__}:{self._attribute}")
        self._complete = True

    def _load(self, points: tuple[EntryPoint, ...]) -> None:
        """Imports what an entry point names, and registers it unless its decorator did."""
        name, place = points[0].name, points[0].value
        if len({point.value for point in points}) > 1:
            named = " and ".join(sorted(point.value for point in points))
            raise UsageError(f"two packages have a {self._what} {name!r}: {named}; uninstall one")
        try:
            found: T = points[0].load()
        except UsageError:
            raise
        except (Exception, SystemExit) as error:  # code of another package: any error is possible
            raise UsageError(
                f"the {self._what} {name!r} cannot be loaded from {place}: {type(error).__name__}: {error}"
            ) from error
        if self._found.get(name) is not found:
            self.add(name, found, place)
        self._others.add(name)
