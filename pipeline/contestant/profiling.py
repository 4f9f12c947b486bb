"""One call under watch: kernels on the device, operators of torch, functions of the candidate's extensions.

torch's own profiler (Kineto) records them; on a GPU it takes the kernels from CUPTI. Everything here runs in
the candidate's process and is a claim, as docs/kernels.md says. What fails here is `trouble` in the report,
never an error of the candidate.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch._C._autograd import DeviceType
from torch.autograd.profiler import profile, record_function

from pipeline.contestant.extensions import BUILT


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_ENTRIES = 256
"""Most names in each of a report's lists."""
MAX_NAME = 200

BY_TORCH = "kernel of torch"
"""The kind of a kernel that was launched while an operator of torch ran, the innermost one around it."""

LIBRARY_NAMESPACES = _words(
    "aten prims prim prepacked quantized _quantized quantization sparse mkl mkldnn mkldnn_prepacked onednn "
    "xnnpack fbgemm _native inductor inductor_prims rngprims debugprims export profiler static_runtime c10d "
    "_c10d_functional _c10d_functional_autograd _dtensor symm_mem torchvision torchaudio torchao"
)
"""Operators of other namespaces are the candidate's own."""

_ALLOCATE = _words(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided _efficientzerotensor resize_ "
    "resize_as_ set_ detach_ squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_ rename_ "
    "requires_grad_ retain_grad _unsafe_view record_stream lift"
)
"""Operators that touch no element: memory is taken, given another shape, or noted."""
_MOVE = _words(
    "copy_ copy clone _to_copy _copy_from _copy_from_and_resize _pin_memory item _local_scalar_dense "
    "_foreach_copy_ _foreach_zero_ zero zero_ zeros zeros_like new_zeros ones ones_like new_ones full "
    "full_like new_full fill fill_ scalar_tensor arange repeat"
)
"""Operators that copy, cast or fill. Those that rearrange (`cat`, `gather`, `pad`) count as computing."""

_MARK = "kernelproof function "
_FENCE = "spin_kernel"
"""A kernel of torch's that is launched after the call: where it is missing, the profiler saw nothing."""
_RELEASE_SECONDS = 0.1
_UNWATCHED = "code pages are not watched"
_MADV_DONTNEED = 4
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+ +(/.+)$")

_ALLOCATIONS = re.compile(
    r"cuda(?:Malloc|Free|HostAlloc|HostRegister|HostUnregister|MemPool)\w*"
    r"|cuMem(?:Alloc|Free|HostAlloc|HostRegister|HostUnregister|Create|Release|Map|Unmap|Address|Pool)\w*"
)
_VERSION = re.compile(r"(?:_v\d+)?(?:_pt[sd][zs])?$")
"""What CUPTI appends to the names of CUDA's functions."""

Totals = dict[tuple[str, str], tuple[int, int]]
"""(kind, name) to count and nanoseconds."""


class Span(NamedTuple):
    """One recorded call; times in nanoseconds."""

    name: str
    """`aten::mm`, or a mark and a function's name."""
    start: int
    end: int
    thread: int


class Watched:
    """A forward that is watched while it is called once; `report` says afterwards what was seen, as JSON."""

    def __init__(self, forward: Callable[..., Any], device: torch.device, *, release: bool = True) -> None:
        """`release`: the profiler lets the GPU go afterwards, which takes a tenth of a second; without that
        later launches are slower."""
        self._forward, self._device, self._releases = forward, device, release
        self._troubles: list[str] = []
        self.report: dict[str, Any] = {"device": None} if device.type == "cuda" else {}

    def __call__(self, *arguments: Any) -> Any:
        """Calls the forward. Raises what it raises."""
        pages = None
        if self._device.type == "cpu" and BUILT:
            pages = self._tried(_UNWATCHED, _CodePages)
        recording = self._tried("the profiler did not start", self._start)
        marks = _Marks(frozenset(BUILT)) if self._device.type == "cpu" and BUILT else None
        if recording is not None:
            sys.setprofile(marks)
        try:
            return self._forward(*arguments)
        finally:
            if recording is not None:
                sys.setprofile(None)
                raised = marks.raised if marks is not None else Counter()
                self._tried("the profile could not be read", lambda: self._stop(recording, raised))
            if pages is not None and marks is not None:
                failed = {name.partition(".")[0] for name in marks.raised}
                touched = self._tried(_UNWATCHED, pages.touched) or []
                self.report["code"] = [name for name in touched if name not in failed]
            self.report["trouble"] = "; ".join(self._troubles)[:1000]

    def _tried(self, what: str, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception as error:
            self._troubles.append(f"{what}: {type(error).__name__}: {error}"[:300])
            return None

    def _start(self) -> profile:
        on_gpu = self._device.type == "cuda"
        settings = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        if on_gpu:
            os.environ["TEARDOWN_CUPTI"] = "1"  # else it stays attached and slows every later launch
        device = "cuda" if on_gpu else None
        recording = profile(use_device=device, use_kineto=True, experimental_config=settings)
        with record_function(_MARK):
            pass  # its first use takes half a millisecond, which would count as a function's
        recording.__enter__()  # type: ignore[no-untyped-call]
        return recording

    def _stop(self, recording: profile, raised: Counter[str]) -> None:
        try:
            self._fence()
        finally:
            recording.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        results = recording.kineto_results
        spans: list[Span] = []
        kernels: Totals = {}
        events = results.events() if results is not None else []
        operators = {e.correlation_id(): e.name() for e in events if e.device_type() == DeviceType.CPU}
        allocations: Counter[str] = Counter()
        for event in events:
            name = event.name()
            if event.is_user_annotation() and not name.startswith(_MARK):
                continue
            if event.device_type() == DeviceType.CUDA:
                launcher = operators.get(event.linked_correlation_id(), "")
                kind = BY_TORCH if launcher.partition("::")[0] in LIBRARY_NAMESPACES else "kernel"
                _add(kernels, (kind, name), 1, event.duration_ns())
            elif event.device_type() == DeviceType.CPU:
                allocations.update(allocation(name))
                start = event.start_ns()
                spans.append(Span(name, start, start + event.duration_ns(), event.start_thread_id()))
        host = calls(spans)
        for name, times in raised.items():  # a function that raised has done no work
            key = ("function", name)
            if key in host and host[key][0] <= times:
                del host[key]
        self.report["host"] = self._listed(host)
        self.report["allocations"] = [list(item) for item in allocations.most_common(MAX_ENTRIES)]
        if self._device.type == "cuda":
            if self._releases:
                self._release()
            if any(_FENCE in name for _, name in kernels):
                launched = {key: total for key, total in kernels.items() if _FENCE not in key[1]}
                self.report["device"] = self._listed(launched)
            else:
                self._troubles.append("the profiler sees no kernels on this machine")

    def _fence(self) -> None:
        if self._device.type == "cuda":
            torch.cuda._sleep(1)  # type: ignore[no-untyped-call]

    def _release(self) -> None:
        """Lets CUPTI go: it detaches in one of the CUDA calls that follow the end of a profile."""
        deadline = time.monotonic() + _RELEASE_SECONDS
        while time.monotonic() < deadline:
            torch.cuda.synchronize(self._device)
            time.sleep(0.01)

    def _listed(self, totals: Totals) -> list[list[Any]]:
        """[kind, name, count, milliseconds], those that took longest first."""
        ranked = sorted(totals.items(), key=lambda item: -item[1][1])
        if len(ranked) > MAX_ENTRIES:
            self._troubles.append(f"{len(ranked) - MAX_ENTRIES} more names, which took least, are left out")
        return [
            [kind, name[:MAX_NAME], count, max(ns, 0) / 1e6]
            for (kind, name), (count, ns) in ranked[:MAX_ENTRIES]
        ]


class _Marks:
    """A `sys.setprofile` function that marks calls of the built modules' functions in the profile."""

    def __init__(self, modules: frozenset[str]) -> None:
        self._modules = modules
        self.raised: Counter[str] = Counter()
        """Functions and how many of their calls raised."""
        self._open: list[record_function] = []

    def __call__(self, frame: FrameType, event: str, function: Any) -> None:
        if not event.startswith("c_"):
            return
        module = getattr(function, "__module__", None)
        if not isinstance(module, str) or module not in self._modules:
            return
        if event == "c_call":
            mark = record_function(f"{_MARK}{module}.{function.__name__}")
            mark.__enter__()  # type: ignore[no-untyped-call]
            self._open.append(mark)
        elif self._open:
            self._open.pop().__exit__(None, None, None)
            if event == "c_exception":
                self.raised[f"{module}.{function.__name__}"] += 1


class _CodePages:
    """Whether code of a built library runs, whoever calls it (ctypes, `functools.partial`, a C++ thread).

    The pages of its code are taken out of this process's page table, and come back when they are used. They
    are never changed, so nothing is lost.
    """

    def __init__(self) -> None:
        """Raises OSError where it cannot be done."""
        self._modules = {os.path.realpath(path): name for name, paths in BUILT.items() for path in paths}
        libc = ctypes.CDLL(None, use_errno=True)
        for mapping in map(_MAPPING.match, _lines("/proc/self/maps")):
            if mapping is not None and self._module(mapping):
                start, end = int(mapping[1], 16), int(mapping[2], 16)
                span = ctypes.c_void_p(start), ctypes.c_size_t(end - start)
                if libc.madvise(*span, _MADV_DONTNEED):
                    raise OSError(ctypes.get_errno(), "madvise failed")

    def touched(self) -> list[str]:
        """Names of the modules whose code ran since. Raises OSError."""
        found, module = set(), None
        for line in _lines("/proc/self/smaps"):
            if (mapping := _MAPPING.match(line)) is not None:
                module = self._module(mapping)
            elif module is not None and line.startswith("Rss:") and int(line.split()[1]):
                found.add(module)
        return sorted(found)

    def _module(self, mapping: re.Match[str]) -> str | None:
        return self._modules.get(mapping[4]) if mapping[3] == "r-xp" else None


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()


def allocation(name: str) -> tuple[str, ...]:
    """The function of CUDA's that takes memory or frees it, if an event of this name is a call of one."""
    base = _VERSION.sub("", name)
    return (base,) if _ALLOCATIONS.fullmatch(base) else ()


def calls(spans: Iterable[Span]) -> Totals:
    """What the spans come to: `function` (marked), `operator` (computes) or `copy` (copies, casts, fills).

    A library's operator counts with all that it calls. A function or an operator of the candidate's counts
    without the operators that it calls. Operators that only allocate, view or delegate are left out.
    """
    totals: Totals = {}
    stacks: dict[int, list[tuple[int, tuple[str, str] | None]]] = {}
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        stack = stacks.setdefault(span.thread, [])
        while stack and stack[-1][0] <= span.start:
            stack.pop()
        caller = stack[-1][1] if stack else None
        if stack and caller is None:  # inside of a library's operator
            continue
        kind, name, is_library = _kind(span.name)
        if not kind:
            continue
        spent = span.end - span.start
        _add(totals, (kind, name), 1, spent)
        if caller is not None:
            _add(totals, caller, 0, -spent)
        stack.append((span.end, None if is_library else (kind, name)))
    return totals


def _add(totals: Totals, key: tuple[str, str], count: int, ns: int) -> None:
    before = totals.get(key, (0, 0))
    totals[key] = (before[0] + count, before[1] + ns)


def _kind(name: str) -> tuple[str, str, bool]:
    """Kind, name and whether it is a library's; no kind for what does not count."""
    if name.startswith(_MARK):
        return ("function", name.removeprefix(_MARK), False) if name != _MARK else ("", "", False)
    namespace, _, base = name.partition("::")
    if not base or "::" in base:  # a range that is no operator
        return "", "", False
    dotted = f"{namespace}.{base}"
    if namespace not in LIBRARY_NAMESPACES:
        return "operator", dotted, False
    if base in _MOVE or base.endswith("_copy"):
        return "copy", dotted, True
    return ("operator" if base not in _ALLOCATE and _computes(name) else ""), dotted, True


@lru_cache(maxsize=4096)
def _computes(name: str) -> bool:
    """False for an operator that only views (its result is an alias), delegates to others, or says something
    of a tensor; judged by the schemas of all its overloads."""
    schemas = [
        s for s in torch._C._jit_get_schemas_for_operator(name) if torch._C._dispatch_has_kernel(_full(s))
    ]
    return not schemas or not all(_views(s) or _delegates(s) or _tells(s) for s in schemas)


def _full(schema: Any) -> str:
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


def _views(schema: Any) -> bool:
    aliases = [result.alias_info for result in schema.returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


def _delegates(schema: Any) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(_full(schema), "CompositeImplicitAutograd")


def _tells(schema: Any) -> bool:
    return bool(schema.returns) and not any("Tensor" in str(result.type) for result in schema.returns)
