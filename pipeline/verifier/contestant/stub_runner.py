"""The runner that serves a candidate's builds without torch: it stands in `stub_torch` for it.

Importing torch takes seconds, and most candidates ask for their builds before they need any of it. So this
loads, constructs and calls the candidate as a rehearsal does, only that nothing is computed. Standard library
only. All that this process says is untrusted, as the candidate lives in it.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
import types
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernelproof.verifier.contestant import build_requests, gpu_facts, stub_torch, wire
from kernelproof.verifier.contestant.build_requests import with_own_files

MODULE = "candidate"
MAX_TRACEBACK = 16_000
_REFUSED = ("CUDAExtension", "CppExtension", "BuildExtension")


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
            "guessed": bool(stub_torch.GUESSES),
            "unknown": self._unknown,
            **_described(error),
        }

    def _install(self) -> None:
        sys.path += self._message["path"]
        cuda, (major, minor) = self._message["device"] == "cuda", self._message["capability"]
        functions = gpu_facts.functions((int(major), int(minor))) if cuda else gpu_facts.no_gpu()
        stub_torch.install(
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

    def _load(self, source: str) -> types.ModuleType:
        Path(self._path).write_text(source, encoding="utf-8", errors="surrogatepass")
        module = types.ModuleType(MODULE)
        module.__file__ = self._path
        module.__dict__.update(hasattr=stub_torch.look_for, getattr=stub_torch.get)
        sys.modules[MODULE] = module
        exec(compile(source, self._path, "exec"), module.__dict__)
        return module

    def _rehearse(self, module: types.ModuleType) -> None:
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
        if stub_torch.TEXT in str(request):
            self._refuse()
        with self._wire:
            wire.send(self._sock, {"op": "build", "request": request})
            reply, descriptors = wire.receive(self._sock, max_fds=1)
        if not descriptors:
            raise RuntimeError(f"Error building extension '{request['name']}': {reply.get('log', '')}")
        os.close(descriptors[0])
        return stub_torch.Stub() if request["is_python_module"] else f"{request['name']}.so"

    def _refuse(self, *_: Any, **__: Any) -> None:
        self._unknown = True
        raise RuntimeError("what this asks for is not known without torch")

    def _note(self, frame: types.FrameType) -> None:
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
