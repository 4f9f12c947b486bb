"""A torch without torch: it lets a candidate run far enough to ask for its builds. Standard library only.

`install` puts it in torch's place. Every name of it exists, whatever it is: `torch.rand(3).relu()` is a
`Stub`, and so is nearly all that is done with one. What a stub cannot know, such as a length, raises
TypeError; a truth value is guessed, and `GUESSES` says that. Modules that the real packages do not have are
not there.
"""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType
from typing import Any

PACKAGES = ("torch", "triton")
TEXT = "<unknown>"
"""The text of every stub: what holds it is not what the candidate would say."""
GUESSES: set[str] = set()
"""What was guessed so far: the candidate may take another way where the real torch is."""

_looking: list[bool] = []
"""Not empty while somebody looks whether an attribute is there: only what was set is."""


class Stub:
    """Anything of torch's."""

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if len(arguments) == 1 and not options and isinstance(arguments[0], FunctionType | type):
            return arguments[0]  # a decorator's
        return Stub()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        first = next(base for base in bases if isinstance(base, Stub))
        return (Base,) if self is first else ()

    def __instancecheck__(self, instance: Any) -> bool:
        GUESSES.add("isinstance")
        return isinstance(instance, Stub | Base)

    def __bool__(self) -> bool:
        GUESSES.add("truth")
        return True

    def __str__(self) -> str:
        return TEXT

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return TEXT

    def __iter__(self) -> Iterator[Any]:
        GUESSES.add("iteration")
        raise TypeError("how many there are is not known without torch")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __setitem__(self, key: Any, value: Any) -> None:
        return None

    def _another(self, *_: object) -> Stub:
        return Stub()

    __hash__ = object.__hash__
    __getitem__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _another  # type: ignore[assignment]
    __neg__ = __pos__ = __abs__ = __invert__ = _another
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _another
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _another
    __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __rand__ = __ror__ = __rmatmul__ = _another


class StubModule(ModuleType):
    """A module of torch's."""

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, name)


class _Class(ABCMeta):
    """The class of classes that derive from one of torch's."""

    def __getattr__(cls, name: str) -> Any:
        if name == "apply" and "forward" in cls.__dict__:  # of an autograd function
            return lambda *arguments: cls.__dict__["forward"].__get__(None, cls)(Stub(), *arguments)
        return _attribute(cls, name)


class Base(metaclass=_Class):
    """What a class of the candidate's derives from that derives from one of torch's: `nn.Module`, say."""

    def __init__(self, *_: Any, **__: Any) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.forward(*arguments, **options)


def _attribute(holder: Any, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if _looking:
        if isinstance(holder, Stub | StubModule):
            GUESSES.add("hasattr")
        else:
            raise AttributeError(name)
    value = Stub()
    setattr(holder, name, value)  # the next look finds the same
    return value


def look_for(holder: Any, name: str) -> bool:
    """`hasattr` for a candidate."""
    return get(holder, name, TEXT) is not TEXT


def get(holder: Any, name: str, *default: Any) -> Any:
    """`getattr` for a candidate."""
    if not default:
        return getattr(holder, name)
    _looking.append(True)
    try:
        return getattr(holder, name, *default)
    finally:
        _looking.pop()


class _Finder:
    """Finds the modules of `PACKAGES` where the real ones are installed, and makes stubs of them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] not in PACKAGES:
            return None
        real = PathFinder.find_spec(name, path)
        if real is None:
            return None
        spec = ModuleSpec(name, self, origin=real.origin, is_package=True)  # type: ignore[arg-type]
        spec.submodule_search_locations = list(real.submodule_search_locations or ())
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StubModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = module.__spec__.origin if module.__spec__ else None


def install(facts: dict[str, dict[str, Any]]) -> None:
    """Puts stubs in the place of torch. `facts`: of a module's name, what its names are.

    Raises ImportError where torch is not installed.
    """
    sys.meta_path.insert(0, _Finder())
    for name in ("torch.nn.functional", *facts):
        __import__(name)
        for key, value in facts.get(name, {}).items():
            setattr(sys.modules[name], key, value)
