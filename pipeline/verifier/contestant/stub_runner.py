"""The runner that serves a candidate's builds without torch: it puts stubs in torch's place.

Importing torch takes seconds, and most candidates ask for their builds before they need any of it. So this
loads, constructs and calls the candidate as a rehearsal does, only that nothing is computed. Standard library
only. All that this process says is untrusted, as the candidate lives in it.

Every name of the stubbed torch exists, whatever it is: `torch.rand(3).relu()` is a `Stub`, and so is nearly
all that is done with one. What a stub cannot know, such as a length, raises TypeError; a truth value is
guessed, and `GUESSES` says that. Modules that the real packages do not have are not there.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
from abc import ABCMeta
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

from kernelproof.verifier.contestant import build_requests, gpu_facts, wire
from kernelproof.verifier.contestant.build_requests import with_own_files

PACKAGES = ("torch", "triton")
TEXT = "<unknown>"
"""The text of every stub: what holds it is not what the candidate would say."""
GUESSES: set[str] = set()
"""What was guessed so far: the candidate may take another way where the real torch is."""

_looking: list[bool] = []
"""Not empty while somebody looks whether an attribute is there: only what was set is."""

MODULE = "candidate"
MAX_TRACEBACK = 16_000
_REFUSED = ("CUDAExtension", "CppExtension", "BuildExtension")


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


def stub_hasattr(holder: Any, name: str) -> bool:
    """`hasattr` for a candidate."""
    return stub_getattr(holder, name, TEXT) is not TEXT


def stub_getattr(holder: Any, name: str, *default: Any) -> Any:
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


def install_stubs(facts: dict[str, dict[str, Any]]) -> None:
    """Puts stubs in the place of torch. `facts`: of a module's name, what its names are.

    Raises ImportError where torch is not installed.
    """
    sys.meta_path.insert(0, _Finder())
    for name in ("torch.nn.functional", *facts):
        __import__(name)
        for key, value in facts.get(name, {}).items():
            setattr(sys.modules[name], key, value)


class StubRunner:
    """One run of one candidate."""

    def __init__(self, sock: socket.socket, message: dict[str, Any]) -> None:
        self._sock, self._message = sock, message
        self._wire = threading.Lock()
        """Whose turn it is to send and wait for the answer: a candidate may build in threads of its own."""
        self._path = str(Path.cwd() / f"{MODULE}.py")
        self._stage = "load"
        self._called: set[int] = set()
        """Lines of the candidate that called a loader."""
        self._unknown = False

    def run(self) -> dict[str, Any]:
        """Loads, constructs and calls the candidate; says how far it came, and what was not known."""
        self._install()
        error = None
        try:
            self._rehearse(self._load(self._message["source"]))
        except BaseException as raised:  # the candidate may raise anything, SystemExit included
            error = raised
        return {
            "stage": self._stage,
            "called": sorted(self._called),
            "guessed": bool(GUESSES),
            "unknown": self._unknown,
            **_described(error),
        }

    def _install(self) -> None:
        sys.path += self._message["path"]
        cuda, (major, minor) = self._message["device"] == "cuda", self._message["capability"]
        functions = gpu_facts.functions((int(major), int(minor))) if cuda else gpu_facts.no_gpu()
        install_stubs(
            {
                "torch": {"__version__": self._message["torch"]},
                "torch.version": {"cuda": self._message["torch_cuda"] or ("13.0" if cuda else None)},
                "torch.cuda": {**functions, "_compile_kernel": self._refuse},
                "torch.utils.cpp_extension": {
                    **dict.fromkeys(_REFUSED, self._refuse),
                    "load_inline": self._load_inline,
                    "load": self._load_files,
                },
            }
        )

    def _load(self, source: str) -> ModuleType:
        Path(self._path).write_text(source, encoding="utf-8", errors="surrogatepass")
        module = ModuleType(MODULE)
        module.__file__ = self._path
        module.__dict__.update(hasattr=stub_hasattr, getattr=stub_getattr)
        sys.modules[MODULE] = module
        exec(compile(source, self._path, "exec"), module.__dict__)
        return module

    def _rehearse(self, module: ModuleType) -> None:
        definitions: dict[str, Any] = {"__name__": "problem"}
        self._stage = "construct"
        exec(compile(self._message["problem"], "problem.py", "exec"), definitions)
        definitions |= self._message["sizes"]
        model = module.__dict__[self._message["class"]](*definitions["get_init_inputs"]())
        self._stage = "call"
        model(*definitions["get_inputs"]())
        self._stage = "end"

    def _load_inline(self, *arguments: Any, **options: Any) -> Any:
        self._note(sys._getframe(1))
        request, directory = build_requests.load_inline(*arguments, **options)
        machine = self._message["machine"]
        return self._ask(with_own_files(request, machine=machine, directory=directory))

    def _load_files(self, *arguments: Any, **options: Any) -> Any:
        self._note(sys._getframe(1))
        request, sources = build_requests.load(*arguments, **options)
        return self._ask(with_own_files(request, machine=self._message["machine"], sources=sources))

    def _ask(self, request: dict[str, Any]) -> Any:
        """Has it built; what stands for the module that torch's function returns."""
        if TEXT in str(request):
            self._refuse()
        with self._wire:
            wire.send(self._sock, {"op": "build", "request": request})
            reply, descriptors = wire.receive(self._sock, max_fds=1)
        if not descriptors:
            raise RuntimeError(f"Error building extension '{request['name']}': {reply.get('log', '')}")
        os.close(descriptors[0])
        return Stub() if request["is_python_module"] else f"{request['name']}.so"

    def _refuse(self, *_: Any, **__: Any) -> None:
        self._unknown = True
        raise RuntimeError("what this asks for is not known without torch")

    def _note(self, frame: FrameType) -> None:
        if frame.f_code.co_filename == self._path:
            self._called.add(frame.f_lineno)


def _described(error: BaseException | None) -> dict[str, str]:
    message, text = "", ""
    if error is not None:
        import traceback  # takes a while, and few candidates raise

        with suppress(BaseException):  # an exception whose own methods raise
            text, message = "".join(traceback.format_exception(error)), str(error)
    return {"message": message[:4000], "traceback": text[-MAX_TRACEBACK:]}


def main() -> None:
    """Takes the socket's descriptor from the command line, and answers one request."""
    gc.enable()
    sock = socket.socket(fileno=int(sys.argv[1]))
    wire.send(sock, {"ready": True, "pid": os.getpid()})
    message, _ = wire.receive(sock)
    wire.send(sock, StubRunner(sock, message).run())
    os._exit(0)  # the candidate's own exit handlers and destructors are of no interest
