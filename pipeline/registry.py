"""Registers classes under names: our own by a decorator, those of other packages by an entry point as well.

Example: `@provider("openai")` stands above a class in `pipeline/providers/`. The module is found because it
lies in that folder; nothing else has to name it.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Generic, TypeVar

from pipeline.errors import UsageError

T = TypeVar("T")


class Registry(Generic[T]):
    """The classes of one kind, each under its name. Names of our own cannot be taken by another package."""

    def __init__(self, what: str, *, group: str, package: str, needs: tuple[str, ...]) -> None:
        """`what` is the kind as messages say it (`provider`), `group` the group of entry points. Modules of
        `package` register our own classes when they are imported. `needs` names the methods that a class has
        to have.
        """
        self._what, self._group, self._package, self._needs = what, group, package, needs
        self._classes: dict[str, T] = {}

    def add(self, name: str, cls: T) -> None:
        """Registers a class. Raises UsageError when another one has the name, or this one lacks a method."""
        if missing := [method for method in self._needs if not callable(getattr(cls, method, None))]:
            raise UsageError(f"the {self._what} {name!r} ({_place(cls)}) lacks {', '.join(missing)}")
        other = self._classes.get(name)
        if other is not None and _place(other) != _place(cls):
            raise UsageError(
                f"two classes are the {self._what} {name!r}: {_place(other)}, {_place(cls)}; rename one"
            )
        self._classes[name] = cls

    def __contains__(self, name: str) -> bool:
        """Whether a class, or an entry point of an installed package, has this name."""
        self._import_ours()
        return name in self._classes or bool(entry_points(group=self._group, name=name))

    def find(self, name: str) -> T:
        """The class registered as `name`. Packages with entry points are imported only when one is asked for.

        Raises UsageError when there is none (the message lists all names), when two packages have one, or
        when the package cannot be imported.
        """
        self._import_ours()
        if name not in self._classes:
            points = tuple(entry_points(group=self._group, name=name))
            if not points:
                raise UsageError(f"no {self._what} {name!r}; there are: {', '.join(self.names())}")
            self._load(points)
        return self._classes[name]

    def names(self) -> tuple[str, ...]:
        """All names, sorted. No other package is imported for them."""
        self._import_ours()
        return tuple(sorted(self._classes.keys() | {point.name for point in entry_points(group=self._group)}))

    def _import_ours(self) -> None:
        package = import_module(self._package)
        for module in iter_modules(package.__path__):
            import_module(f"{self._package}.{module.name}")

    def _load(self, points: tuple[EntryPoint, ...]) -> None:
        """Imports what an entry point names, and registers it unless its decorator did."""
        name = points[0].name
        if len({point.value for point in points}) > 1:
            named = " and ".join(sorted(point.value for point in points))
            raise UsageError(f"two packages have a {self._what} {name!r}: {named}; uninstall one")
        try:
            found: T = points[0].load()
        except UsageError:
            raise
        except Exception as error:  # code of another package: any error is possible
            raise UsageError(
                f"the {self._what} {name!r} cannot be loaded from {points[0].value}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not isinstance(found, type):
            raise UsageError(f"the {self._what} {name!r}: {points[0].value} is no class")
        self.add(name, found)


def _place(cls: object) -> str:
    return f"{getattr(cls, '__module__', '?')}.{getattr(cls, '__qualname__', cls)}"
