"""The runner inside the sandbox: answers the referee's requests, one at a time, until told to stop.

It holds no secret and no verdict: it hands inputs to the candidate and outputs back. Everything it says
after the candidate is loaded is untrusted, since the candidate lives in the same process. For baselines
only, it compiles the problem's model with torch.compile and warms it up.

The build stage has it pretend a device where there is none (`FakeDevice`, `fake_gpu`), to let a candidate run
far enough to ask for all its builds; nothing else that the candidate does there counts.

A candidate that takes more cores than the baseline beside it has is faster for that alone. So the system
call that would take them, sched_setaffinity(2), does nothing from then on, in any thread or process that is
started: one more seccomp(2) filter answers it with success (`lock_cores`).
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import gc
import os
import platform
import socket
import struct
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kernelproof.verifier.contestant import arena as arenas
from kernelproof.verifier.contestant import encoding, gpu_facts, loop, wire
from kernelproof.verifier.contestant.between_calls import Digests
from kernelproof.verifier.contestant.call_page import CallPage
from kernelproof.verifier.contestant.extensions import (
    ExtensionLoader,
    FirstCalls,
    packed_kernels,
    unpack_kernels,
)
from kernelproof.verifier.contestant.loop import Forward, Slot
from kernelproof.verifier.contestant.profiling import Dispatched, Watched, add_first_calls
from kernelproof.verifier.contestant.reset import Settings, give_memory_back, settings_of_torch
from kernelproof.verifier.contestant.used_memory import give_back, used_memory
from kernelproof.verifier.contestant.weight_draws import constructed

MODULE = "candidate"
"""The candidate's module name."""
MAX_TRACEBACK = 16_000
DEFAULT_THREADS = torch.get_num_threads()
LONG_BEFORE = 8_000_000
"""An untimed call's late inputs come so many cycles of the device's clock later, some 4 ms: it is made long
before they are there, also when it waits for memory first."""
_NO_HOST_MEMORY = "DefaultCPUAllocator: can't allocate memory"
"""How torch says that host memory is short: a RuntimeError without a type of its own."""


_stdout = sys.stdout
_sleep: Any = torch.cuda._sleep

_GETTERS = {getattr(torch.Tensor, name).__get__: name for name in ("device", "is_cuda", "is_cpu", "is_meta")}
_IS_META = getattr(torch.Tensor, "is_meta").__get__  # noqa: B009

_MACHINES = {"x86_64": (0xC000003E, 203, 317), "aarch64": (0xC00000B7, 122, 277)}
"""The kernel's name of the architecture, and its numbers of sched_setaffinity and seccomp."""
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _SUCCEED = 0x7FFF0000, 0x00050000
"""The second is SECCOMP_RET_ERRNO with no error."""
_AT_NUMBER, _AT_ARCH = 0, 4
_PR_SET_NO_NEW_PRIVS, _SET_MODE_FILTER, _ALL_THREADS = 38, 1, 1


def _ring(kept: Any, value: Any) -> int:
    """How many results fit in one storage, in which two of them lie at different places; 0 where none do."""
    found = 0
    with contextlib.suppress(RuntimeError):
        places = {t.untyped_storage().data_ptr(): t.data_ptr() for t in encoding.tensors(kept) if t.numel()}
        for tensor in filter(torch.Tensor.numel, encoding.tensors(value)):
            whole = tensor.untyped_storage()
            if places.get(whole.data_ptr(), tensor.data_ptr()) != tensor.data_ptr():
                found = max(found, whole.nbytes() // (tensor.numel() * tensor.itemsize))
    return found


def _write_out() -> None:
    """Writes what was printed so far: the end of this process comes without warning."""
    with contextlib.suppress(Exception):
        _stdout.flush()


class Runner:
    """State of one contestant: its socket, arenas, candidate."""

    def __init__(self, sock: socket.socket, *, alone: bool = False) -> None:
        """`alone`: this process is the contestant's and nobody else's."""
        self._sock, self._alone = sock, alone
        self._wire = threading.Lock()
        """Whose turn it is to send and wait for the answer: a candidate may build in threads of its own."""
        self._arenas: dict[str, arenas.Arena] = {}
        self._device = torch.device("cpu")
        self._flush_bytes = 0
        self._digests: Digests | None = None
        """On a GPU."""
        self._page: CallPage | None = None
        self._watching = contextlib.ExitStack()
        """Who watches a block of calls, until its places are asked for."""
        self._model: Any = None
        self._module: types.ModuleType | None = None
        self._kept: Any = None
        self._guard: arenas.GuardedModel | None = None
        self._compiled = False
        self._is_candidate = False
        """Whether ModelNew was constructed, whose new memory is not zero in untimed calls."""
        self._has_filled = False
        """Whether memory was filled since calls were timed."""
        self._first_calls: FirstCalls | None = None
        self._fake_device_type = "cpu"
        self._fake_device: AbstractContextManager[Any] = nullcontext()
        self._interpreted: list[str] = []
        """Names of kernels that were interpreted, one for each launch."""
        self._held: list[int] = []
        """The cores that it is measured on; none: all."""
        self._locked = False
        """Whether they are locked: another filter would make each system call slower."""
        self._settings: Settings = ()
        """Torch's, before anything was loaded."""
        self._handlers: dict[str, Callable[[dict[str, Any], list[int]], dict[str, Any]]] = {
            "hello": self._hello,
            "pretend": self._pretend,
            "rehearse": self._rehearse,
            "pack": self._pack,
            "once": self._once,
            "hold": self._hold,
            "attach": self._attach,
            "detach": self._detach,
            "reset": self._reset,
            "load": self._load,
            "construct": self._construct,
            "weights": self._weights,
            "compile": self._compile,
            "call": self._call,
            "again": self._again,
            "guarded": self._guarded,
            "state": self._state,
            "time": self._time,
            "replay": self._replay,
        }

    def serve(self) -> None:
        """Answers requests until `bye` or the end of the connection.

        Between a reply and the next request the wire is this thread's: another may ask for a build only while
        somebody waits for a reply.
        """
        with self._wire:
            self._serve()

    def _serve(self) -> None:
        while True:
            try:
                message, fds = wire.receive(self._sock, max_fds=4)
            except wire.WireClosed:
                return
            if message.get("op") == "bye":
                return
            self._wire.release()
            try:
                reply = self._handlers[str(message.get("op"))](message, fds)
            except BaseException as error:  # the candidate may raise anything, SystemExit included
                reply = {"error": describe_error(error, self._first_calls)}
            finally:
                self._wire.acquire()
            if message.get("op") != "time":  # around that a clock runs
                _write_out()
            wire.send(self._sock, reply)

    def ask_for_build(self, request: dict[str, Any]) -> tuple[dict[str, Any], int | None]:
        """Sends a build request in the middle of a load or a call; returns the reply and the library."""
        reply, fds = self._asked({"op": "build", "request": request}, max_fds=1)
        return reply, fds[0] if fds else None

    def _hello(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._device = torch.device(message["device"])
        if message.get("first_calls") is not None:
            self._first_calls = FirstCalls(message["first_calls"])
        configure_torch(int(message["threads"]), tf32=bool(message.get("tf32")))
        self._settings = settings_of_torch()
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
            torch.zeros(1, device=self._device)
        self._flush_bytes = message["flush_bytes"]
        cubin = base64.b64decode(message.get("cubin", ""))
        if cubin and self._digests is None:
            self._digests = Digests(self._device, cubin)
        return {"torch": torch.__version__, "python": sys.version.split()[0]}

    def _pretend(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """For the build stage: the code that is loaded finds a GPU, though there is none."""
        self._fake_device_type = str(message["device"])
        if self._fake_device_type == "cuda":
            major, minor = message["capability"]
            fake_gpu((int(major), int(minor)))
            self._fake_device = FakeDevice("cuda", cpu_too=False)
            if self._first_calls is not None:
                self._first_calls.inside.compile_only((int(major), int(minor)))
        return {}

    def _rehearse(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """For the build stage: the model is constructed and called with tensors that have no memory."""
        assert self._module is not None
        rehearse(self._module, message["class"], message["problem"], message["sizes"], self._fake_device_type)
        return {}

    def _pack(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """For the build stage: what compilers left that run at a first call."""
        return {"packed": packed_kernels()}

    def _once(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """For a sanitizer: one call as the problem says, on tensors that this process allocates."""
        assert self._module is not None
        name, batch = message["class"], message["batch"]
        call_once(self._module, name, message["problem"], message["sizes"], self._device, batch)
        self._settle()
        return {}

    def _hold(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Keeps to the cores that it is measured on, and from the load on for good."""
        self._held = list(message["cores"])
        if self._alone:
            hold_to_cores(self._held)
        else:
            os.sched_setaffinity(0, self._held)
        return {}

    def _attach(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        for item in message["arenas"]:
            name = item["name"]
            if "handle" in item:
                arena = arenas.attach_device(name, item["handle"], int(item["nbytes"]), self._device)
            else:
                arena = arenas.attach_shared(name, fds.pop(0))
            self._arenas[name] = arena
        if message.get("calls") and self._digests is not None:
            self._page = CallPage(fds.pop(0))
            self._digests.listen(self._page)
        return {}

    def _detach(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Gives shared memory back: the same device memory cannot be opened twice."""
        self._kept = None
        self._settle()
        for name in message["arenas"]:
            arenas.release(self._arenas.pop(name))
        return {}

    def _reset(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Lets go of a reference and of all its memory, so that another may be loaded. Raises RuntimeError
        where it has changed torch's settings."""
        self._model = self._module = self._kept = self._guard = self._page = None
        self._has_filled = False
        sys.modules.pop(MODULE, None)
        self._settle()
        while self._arenas:
            arenas.release(self._arenas.popitem()[1])
        give_memory_back(self._device)
        if settings_of_torch() != self._settings:
            raise RuntimeError("a reference has changed torch's settings")
        return {}

    def _load(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        if self._held and self._alone and not self._locked:
            self._locked = lock_cores()
        for descriptor in fds:
            unpack_kernels(descriptor)
        if self._first_calls is not None and self._first_calls.interprets:
            self._first_calls.inside.interpreted(self._interpreted.append)
        module = types.ModuleType(MODULE)
        path = Path.cwd() / f"{MODULE}.py"
        path.write_text(message["source"], encoding="utf-8", errors="surrogatepass")
        module.__file__ = str(path)
        sys.modules[MODULE] = module
        torch.manual_seed(int(message["seed"]))
        with self._fake_device:
            exec(compile(message["source"], str(path), "exec"), module.__dict__)
        self._module = module
        return {}

    def _construct(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        arguments = self._decode(message["arguments"])
        seed = int(message["seed"])
        torch.manual_seed(seed)
        make = self._module.__dict__[message["class"]]
        self._is_candidate = message["class"] == "ModelNew"
        with self._untimed():
            model = constructed(lambda: make(*arguments), seed, self._device).to(self._device)
        self._model, self._guard = model, None
        state = model.state_dict()
        return {"state": {k: [encoding.dtype_name(v.dtype), list(v.shape)] for k, v in state.items()}}

    def _weights(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Copies the reference's initial weights over the candidate's of the same name."""
        state = self._model.state_dict()
        with torch.no_grad():
            for name, spec in message["tensors"].items():
                state[name].copy_(self._tensor(spec))
        return {}

    def _compile(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Puts the compiled model in the model's place, warmed up: for baselines only."""
        slots, self._compiled = self._slots(message), True
        self._model, seen = compile_model(self._model, message["kind"], slots, self._device)
        return seen

    def _state(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Copies the candidate's parameters and buffers of these names to where the referee reads them."""
        state = self._model.state_dict()
        wanted = message["tensors"]
        for name, spec in wanted.items():
            if name in state:
                self._tensor(spec).copy_(state[name])
        self._settle()
        return {"missing": [name for name in wanted if name not in state]}

    def _call(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """One untimed call, watched if asked to. The result stays alive, so that `again` can see it change;
        with `hold` the result before stays instead, and `ring` says how many such results fit in the memory
        of both."""
        arguments, places = self._decode(message["arguments"]), self._places(message)
        torch.manual_seed(int(message["seed"]))
        late = self._late(message.get("late", ()))
        with torch.no_grad(), self._untimed(*encoding.tensors(arguments), *places):
            if late:
                if self._device.type == "cuda":
                    _sleep(LONG_BEFORE)
                loop.bring(late)
            report, value = self._watch(message), None
            with self._watching:
                value = self._model(*arguments)
        report["output"] = loop.describe(value).as_json()
        report["copied"] = loop.copy_out(value, places)
        self._settle()
        if message.get("hold"):
            return report | {"ring": _ring(self._kept, value)}
        self._kept = value
        return report

    def _guarded(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """As `call`, with margins around weights and new tensors, and how many of their bytes changed."""
        model, most = self._model, int(message["most"])
        with torch.no_grad():
            guard = self._guard = self._guard or arenas.GuardedModel(model, self._device, most)
        self._model = partial(guard.call, int(message["fill"]))
        try:
            reply = self._call(message, fds)
        finally:
            self._model = model
        return reply | {"changed": guard.changed()}

    def _again(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Copies the kept result out once more."""
        copied = loop.copy_out(self._kept, self._places(message))
        self._settle()
        return {"copied": copied}

    def _time(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._kept = None
        if self._has_filled:
            self._has_filled = False
            give_back(self._device)
        slots, calls = self._slots(message), None
        if self._digests is not None and self._page is not None:
            calls = loop.Calls(self._digests, self._page, self._ask_for_call)
        report = self._watch(message)
        with self._watching:
            times = loop.run_block(
                *(self._model, slots, self._device, self._ask_for_places),
                at_once=self._compiled,
                calls=calls,
            )
        return {"ms": times} | report

    def _untimed(self, *tensors: torch.Tensor) -> AbstractContextManager[None]:
        """What a candidate's untimed work on these tensors is done in."""
        if not self._is_candidate:
            return nullcontext()
        self._has_filled = True
        return used_memory(self._device, sum(tensor.nbytes for tensor in tensors))

    def _watch(self, message: dict[str, Any]) -> dict[str, Any]:
        """Begins to watch, if asked to, until `_watching` is closed. What comes back is empty till then. The
        frames around a forward are the same as where nobody watches."""
        report: dict[str, Any] = {}
        self._interpreted.clear()
        if message.get("watched") == "dispatched":
            seen = Dispatched()
            if message["op"] == "call":  # not every program runs in such a mode
                self._watching.enter_context(contextlib.suppress(Exception))
            self._watching.callback(lambda: report.update(profile={"dispatched": seen.report}))
            self._watching.enter_context(seen)
        elif "watched" in message:
            watched = Watched(self._device, release=bool(message["timed_next"]))

            def tell() -> None:
                if self._first_calls is not None:
                    kernels = self._first_calls.inside.made()
                    add_first_calls(watched.report, kernels, self._interpreted)
                report["profile"] = watched.report

            self._watching.callback(tell)
            self._watching.enter_context(watched)
        return report

    def _ask_for_call(self) -> int:
        reply, _ = self._asked({"op": "next"})
        return int(reply["call"])

    def _ask_for_places(self) -> list[list[torch.Tensor]]:
        """Where the results of a block go: told when all its calls are made."""
        self._watching.close()
        reply, _ = self._asked({"op": "places"})
        return [[self._tensor(spec) for spec in outputs] for outputs in reply["places"]]

    def _asked(self, request: dict[str, Any], max_fds: int = 0) -> tuple[dict[str, Any], list[int]]:
        """The answer to a request in the middle of another, and the descriptors that came with it."""
        with self._wire:
            wire.send(self._sock, request)
            return wire.receive(self._sock, max_fds=max_fds)

    def _replay(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        inputs = self._decode(message["arguments"]), self._late(message["late"])
        flushed = torch.empty(self._flush_bytes // 4, device=self._device)
        return {"ms": loop.replay(self._model, *inputs, self._places(message), flushed, self._device)}

    def _settle(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _slots(self, message: dict[str, Any]) -> list[loop.Slot]:
        seeds = message.get("seeds") or [None] * len(message["slots"])
        pairs = zip(message["slots"], seeds, strict=True)
        return [loop.Slot(self._decode(arguments), seed) for arguments, seed in pairs]

    def _late(self, pairs: Sequence[Sequence[dict[str, Any]]]) -> loop.Late:
        return [(self._tensor(place), self._tensor(source)) for place, source in pairs]

    def _places(self, message: dict[str, Any]) -> list[torch.Tensor]:
        return [self._tensor(spec) for spec in message["outputs"]]

    def _decode(self, value: Any) -> Any:
        return encoding.decode(value, self._tensor)

    def _tensor(self, spec: dict[str, Any]) -> torch.Tensor:
        return self._arenas[spec["arena"]].view(spec)


def configure_torch(threads: int, *, tf32: bool = False) -> None:
    """Threads (0: torch's own choice) and float32 precision, the same in referee and contestants."""
    torch.set_num_threads(threads or DEFAULT_THREADS)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def describe_error(error: BaseException, first_calls: FirstCalls | None = None) -> dict[str, Any]:
    """An exception as data: kind, type, message and traceback, all bounded.

    The kind is `oom`, `compile`, `uninterpretable` or `exception`.
    """
    try:
        text = "".join(traceback.format_exception(error))
        message = str(error)
    except BaseException:  # an exception whose own methods raise
        text, message = "", ""
    memory = isinstance(error, MemoryError | torch.OutOfMemoryError)
    memory = memory or (isinstance(error, RuntimeError) and _NO_HOST_MEMORY in message)
    kind = "oom" if memory else "exception"
    if not memory and first_calls is not None and first_calls.compile_error(error):
        kind = "uninterpretable" if first_calls.cannot_interpret(error) else "compile"
    return {
        "kind": kind,
        "type": type(error).__name__[:200],
        "message": message[:4000],
        "traceback": text[-MAX_TRACEBACK:],
    }


def main() -> None:
    """Takes the socket's descriptor from the command line and serves it."""
    descriptor = int(sys.argv[1])
    gc.freeze()  # imported objects stay: a search for garbage in them takes longer than many a forward
    gc.enable()
    sock = socket.socket(fileno=descriptor)
    runner = Runner(sock, alone=True)
    ExtensionLoader(runner.ask_for_build, Path.cwd() / "extensions").install()
    wire.send(sock, {"ready": True, "pid": os.getpid()})
    runner.serve()
    os._exit(0)  # the candidate's own exit handlers and destructors are of no interest


COMPILE_MODES: dict[str, str | None] = {"compile": None, "max-autotune": "max-autotune"}
"""The baseline's name and torch.compile's mode."""
WARM_UP_CALLS = 4
"""At least: the first compiles, the next two let max-autotune run and record its CUDA graph, one replays."""


def compile_model(
    model: torch.nn.Module, kind: str, slots: Sequence[Slot], device: torch.device
) -> tuple[Forward, dict[str, Any]]:
    """The compiled model, called on every slot and at least `WARM_UP_CALLS` times; and what was seen.

    Seen are `graphs` and `graph_breaks` (numbers), and `seconds` until everything was compiled. From then on
    a call that would compile again raises RuntimeError: it would be timed as if it were a call. Raises
    whatever compiler and model raise, and where torch.compile would silently run the model eagerly instead
    because it had to compile it too often.
    """
    import torch._dynamo
    from torch._dynamo.utils import counters

    torch._dynamo.config.fail_on_recompile_limit_hit = True
    began = time.monotonic()
    forward: Forward = torch.compile(model, mode=COMPILE_MODES[kind], dynamic=False)
    with torch.no_grad():
        for number in range(max(WARM_UP_CALLS, len(slots))):
            forward(*slots[number % len(slots)].arguments)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    torch.compiler.set_stance("fail_on_recompile")
    return forward, {
        "graphs": int(counters["stats"]["unique_graphs"]),
        "graph_breaks": sum(counters["graph_break"].values()),
        "seconds": round(time.monotonic() - began, 3),
    }


class FakeDevice(TorchFunctionMode):
    """While it is entered, tensors that are asked for on a device have no memory there, and say that they are
    on it."""

    def __init__(self, device: str, *, cpu_too: bool) -> None:
        """`cpu_too`: those that are asked for on the CPU, as well."""
        super().__init__()
        self._device = torch.device(device, 0) if device == "cuda" else torch.device(device)
        self._replaced = {"cuda", "cpu"} if cpu_too else {"cuda"}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = _GETTERS.get(func)
        if name is not None:
            if not _IS_META(args[0]):
                return func(*args)
            return self._device if name == "device" else name == f"is_{self._device.type}"
        if func is torch.Tensor.cuda:
            return args[0].to("meta")
        if func is torch.Tensor.cpu and _IS_META(args[0]):
            return args[0]
        return func(*self._elsewhere(args), **self._elsewhere(kwargs or {}))

    def _elsewhere(self, value: Any) -> Any:
        """Arguments with the memoryless device for those that are pretended."""
        if isinstance(value, torch.device | str) and str(value).partition(":")[0] in self._replaced:
            return torch.device("meta")
        if isinstance(value, tuple):
            return tuple(map(self._elsewhere, value))
        if isinstance(value, dict):
            return {key: self._elsewhere(item) for key, item in value.items()}
        return value


def fake_gpu(capability: tuple[int, int]) -> None:
    """From now on `torch.cuda` says that there is one GPU of this compute capability."""
    for name, value in gpu_facts.functions(capability).items():
        setattr(torch.cuda, name, value)
    torch.version.cuda = torch.version.cuda or "13.0"


def defined(problem: str, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions of a problem's source, with the constants of one of its sizes."""
    definitions: dict[str, Any] = {"__name__": "problem"}
    exec(compile(problem, "problem.py", "exec"), definitions)
    definitions |= sizes  # in place: its functions look there
    return definitions


def rehearse(
    candidate: types.ModuleType, name: str, problem: str, sizes: Mapping[str, Any], device: str
) -> None:
    """Constructs the candidate's model as the problem says, and calls it once, without memory."""
    with FakeDevice(device, cpu_too=True), torch.device("meta"), torch.no_grad():
        definitions = defined(problem, sizes)
        model = candidate.__dict__[name](*definitions["get_init_inputs"]())
        model(*definitions["get_inputs"]())


def call_once(
    candidate: types.ModuleType,
    name: str,
    problem: str,
    sizes: Mapping[str, Any],
    device: torch.device,
    batch: int | None,
) -> None:
    """Constructs the candidate's model as the problem says, and calls it once. `batch`: on so many of the
    first elements of each tensor that shares the leading size, or of the first tensor alone where the
    reference takes only that.

    Everything else happens on the CPU, so that a sanitizer of a GPU sees no kernel of ours. Raises whatever
    either model raises.
    """
    definitions = defined(problem, sizes)
    torch.manual_seed(0)
    arguments = list(definitions["get_inputs"]())
    with torch.no_grad():
        if batch is not None:
            reference = definitions["Model"](*definitions["get_init_inputs"]())
            arguments = first_elements(reference, arguments, batch)
        make = candidate.__dict__[name]
        model = constructed(lambda: make(*definitions["get_init_inputs"]()), 0, torch.device("cpu"))
        model = model.to(device)
        model(*[each.to(device) if isinstance(each, torch.Tensor) else each for each in arguments])


def first_elements(reference: Forward, arguments: Sequence[Any], batch: int) -> list[Any]:
    """The arguments, cut to so many elements along their leading dimension. Raises what the reference raises
    where it takes them in neither way, and StopIteration where no argument is a tensor."""
    first, size = next((n, a.shape[0]) for n, a in enumerate(arguments) if isinstance(a, torch.Tensor))

    def cut(chosen: Callable[[int], bool]) -> list[Any]:
        return [
            each[:batch].clone() if isinstance(each, torch.Tensor) and chosen(number) else each
            for number, each in enumerate(arguments)
        ]

    shared = cut(lambda number: arguments[number].shape[:1] == (size,))
    with contextlib.suppress(Exception):
        reference(*shared)
        return shared
    alone = cut(lambda number: number == first)
    reference(*alone)
    return alone


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def hold_to_cores(cores: Iterable[int]) -> None:
    """All threads of this process, and what they start from now on, run on these cores."""
    cores, held = tuple(cores), set[int]()
    while found := {int(thread.name) for thread in Path("/proc/self/task").iterdir()} - held:
        for thread in found:  # the next look finds what they started before their turn came
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.sched_setaffinity(thread, cores)
        held |= found


def lock_cores() -> bool:
    """Nobody in this process, nor what it starts, changes its cores any more. False where this kernel cannot
    do that."""
    if platform.machine() not in _MACHINES:
        return False
    architecture, set_affinity, seccomp = _MACHINES[platform.machine()]
    code = b"".join(
        struct.pack("<HBBI", *step)
        for step in (
            (_LOAD, 0, 0, _AT_ARCH),
            (_IF_EQUAL, 0, 3, architecture),  # another: left to the sandbox's own filter
            (_LOAD, 0, 0, _AT_NUMBER),
            (_IF_EQUAL, 0, 1, set_affinity),
            (_RETURN, 0, 0, _SUCCEED),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    program = _Program(len(code) // 8, code)
    return bool(library.syscall(seccomp, _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(program)) == 0)
