"""One call under watch: kernels on the device, operators of torch, functions of the candidate's extensions.

torch's own profiler (Kineto) records them; on a GPU it takes the kernels from CUPTI. Everything here runs in
the candidate's process and is a claim, as docs/rationale/kernels.md says. A failure here is `trouble` in the
report, never an error of the candidate. Of operators that call each other one counts, with all that it calls
(`attributed`).

The profiler can be stopped from within the call, or told to look away. So it has to have recorded two marks
of ours, before the call and after it (`Watched`), and another call is watched by a dispatch mode, which
knows nothing of the profiler (`Dispatched`).
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest
from math import prod
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch._C._autograd import DeviceType
from torch.autograd.profiler import profile, record_function
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kernelproof.verifier.contestant.between_calls import LOOP_KERNELS
from kernelproof.verifier.contestant.extensions import BUILT


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LIBRARY_NAMESPACES = _words(
    "aten prims prim prepacked quantized _quantized quantization sparse mkl mkldnn mkldnn_prepacked onednn "
    "xnnpack fbgemm _native inductor inductor_prims rngprims debugprims export profiler static_runtime c10d "
    "_c10d_functional _c10d_functional_autograd _dtensor symm_mem torchvision torchaudio torchao"
)
"""Operators of other namespaces are the candidate's own."""

_ALLOCATE = _words(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided _efficientzerotensor resize_ "
    "resize_as_ set_ detach_ squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_ rename_ "
    "requires_grad_ retain_grad _coalesced_ _unsafe_view record_stream lift sparse_resize_and_clear_ "
    "_sparse_coo_tensor_with_dims_and_tensors _empty_affine_quantized _empty_per_channel_affine_quantized"
)
"""Operators that touch no element: memory is taken, given another shape, or noted."""
_MOVE = _words(
    "copy_ copy clone _to_copy _copy_from _copy_from_and_resize _pin_memory item _local_scalar_dense "
    "_foreach_copy_ _foreach_zero_ zero zero_ zeros zeros_like new_zeros ones ones_like new_ones full "
    "full_like new_full fill fill_ scalar_tensor arange repeat copy_sparse_to_sparse_"
)
"""Operators that copy, cast or fill. Those that rearrange (`cat`, `gather`, `pad`) count as computing."""
_REPEATS_BY, _FEW = frozenset({"aten.add", "aten.cat"}), 64
"""`repeat` calls these on a few sizes. No other one of these calls operators that compute."""

MARK = "kernelproof function "
BEGINS, ENDS = "kernelproof begins", "kernelproof ends"
"""Marks around the call. Where one of them is missing, the record was interrupted in between."""

Key = tuple[str, str]
"""Kind and name."""
Totals = dict[Key, tuple[int, int]]
"""Count and nanoseconds of each."""


class Span(NamedTuple):
    """One recorded call; times in nanoseconds."""

    name: str
    """`aten::mm`, or a mark and a function's name."""
    start: int
    end: int
    thread: int
    correlation: int = 0
    """The number by which a kernel names its launch."""
    elements: int = 0
    """Of the tensors that it got, as `passed_over` counts them."""


class Attributed(NamedTuple):
    """What spans come to."""

    totals: Totals
    owners: dict[int, Key]
    """With what a span of a library's counts, by the span's correlation."""
    elements: dict[Key, int]
    """Elements of the tensors that a library's operator got, in all its calls."""


_EACH_COUNTS = re.compile(r"mm|mv|matmul|linear|conv|dot|einsum|attention|maximum|minimum|fmax|fmin")


def passed_over(name: str, shapes: Iterable[Sequence[int]]) -> int:
    """Elements of an operator's tensors of these shapes. But for products and maxima, tensors of one shape
    count once: `x * x` and `x + y` pass over as many elements as `x ** 2`, and a row times a column over as
    many as their outer product."""
    all_shapes = [tuple(shape) for shape in shapes]
    if _EACH_COUNTS.search(name):
        return sum(map(prod, all_shapes))
    distinct = set(all_shapes)
    if not _is_pointwise(name):
        return sum(map(prod, distinct))
    sizes = [set(each) - {1} for each in zip_longest(*(shape[::-1] for shape in distinct), fillvalue=1)]
    fit = len(distinct) > 1 and all(len(each) < 2 for each in sizes)
    outer = prod(max(each, default=1) for each in sizes) if fit else 0
    return max(sum(map(prod, distinct)), outer)


def attributed(spans: Iterable[Span], launchers: Collection[int] = ()) -> Attributed:
    """What the spans come to: `function` (marked), `operator` (computes) or `copy` (copies, casts, fills).

    A library's operator counts with all that it calls; but a copy that computes was overridden. It counts, as
    a function or an operator of the candidate's does, without the operators that it calls. Operators that
    only allocate, view or delegate are left out, but for `launchers`: correlations of spans in which a kernel
    was launched. `_fused_rms_norm` delegates on a CPU, and has a kernel on a GPU.
    """
    totals: Totals = {}
    owners: dict[int, Key] = {}
    elements: dict[Key, int] = {}
    stacks: dict[int, list[tuple[int, Key, bool]]] = {}
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        stack = stacks.setdefault(span.thread, [])
        while stack and stack[-1][0] <= span.start:
            stack.pop()
        caller, in_library = stack[-1][1:] if stack else (None, False)
        kind, name, is_library = _kind(span.name)
        overridden = kind == "operator" and caller is not None and caller[0] == "copy"
        if caller == ("copy", "aten.repeat") and name in _REPEATS_BY and span.elements <= _FEW:
            overridden = False
        if in_library and caller is not None and not overridden:
            owners[span.correlation] = caller
            continue
        if not kind and is_library and span.correlation in launchers:
            kind = "operator"
        if not kind:
            continue
        key = (kind, name)
        spent = span.end - span.start
        add(totals, key, 1, spent)
        if caller is not None:
            add(totals, caller, 0, -spent)
        if is_library:
            owners[span.correlation] = key
            elements[key] = elements.get(key, 0) + span.elements
        stack.append((span.end, key, is_library))
    return Attributed(totals, owners, elements)


def add(totals: Totals, key: Key, count: int, ns: int) -> None:
    before = totals.get(key, (0, 0))
    totals[key] = (before[0] + count, before[1] + ns)


def _kind(name: str) -> tuple[str, str, bool]:
    """Kind, name and whether it is a library's; no kind for what does not count."""
    if name.startswith(MARK):
        return ("function", name.removeprefix(MARK), False) if name != MARK else ("", "", False)
    namespace, _, base = name.partition("::")
    if not base or "::" in base:  # a range that is no operator
        return "", "", False
    dotted = f"{namespace}.{base}"
    if namespace not in LIBRARY_NAMESPACES:
        return "operator", dotted, False
    if base in _MOVE or (base.endswith("_copy") and base != "index_copy"):
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


@lru_cache(maxsize=4096)
def _is_pointwise(name: str) -> bool:
    """Whether an operator combines its tensors element by element."""
    packet = getattr(torch.ops.aten, name.replace("::", ".").partition(".")[2], None)
    overloads = packet.overloads() if packet is not None else ()
    return any(torch.Tag.pointwise in getattr(packet, overload).tags for overload in overloads)


def _full(schema: Any) -> str:
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


def _views(schema: Any) -> bool:
    aliases = [result.alias_info for result in schema.returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


def _delegates(schema: Any) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(_full(schema), "CompositeImplicitAutograd")


def _tells(schema: Any) -> bool:
    return bool(schema.returns) and not any("Tensor" in str(result.type) for result in schema.returns)


TRACE_SECONDS = 60.0
"""Traced calls may take this much longer than plain ones."""
MAX_ENTRIES = 256
"""Most names in each of a report's lists."""
MAX_NAME = 200
MAX_KERNELS = 4096
"""Most kernels whose files are told: torch itself brings a few dozen."""
MAX_TEXT = 2000
"""Characters of a kernel's text that are told."""

BY_TORCH = "kernel of torch"
"""The kind of a kernel that was launched while an operator of torch ran, the innermost one around it."""

_FENCE = "spin_kernel"
"""A kernel of torch's that is launched after the call: where it is missing, the profiler saw nothing."""
_sleep: Any = getattr(torch._C, "_cuda_sleep", None)
"""Bound before there is any code of a candidate's, who could put nothing in its place."""
NO_KERNELS = "the profiler sees no kernels on this machine"
_RELEASE_SECONDS = 0.1
_MEMORY = re.compile(r"Mem(?:cpy|set)\b")
_UNWATCHED = "code pages are not watched"
_MADV_DONTNEED = 4
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+ +(/.+)$")

_ALLOCATIONS = re.compile(
    r"cuda(?:Malloc|Free|HostAlloc|HostRegister|HostUnregister|MemPool)\w*"
    r"|cuMem(?:Alloc|Free|HostAlloc|HostRegister|HostUnregister|Create|Release|Map|Unmap|Address|Pool)\w*"
)
_OF_CUDA = re.compile(r"cu(?:da)?[A-Z]\w*$")
Launched = tuple[str, int, int, Any]
"""A kernel's name, its nanoseconds, what launched it, and Kineto's event."""
_VERSION = re.compile(r"(?:_v\d+)?(?:_pt[sd][zs])?$")
"""What CUPTI appends to the names of CUDA's functions."""


class Watched:
    """Watches what runs while it is entered; `report` says afterwards what was seen, as JSON. No function of
    ours is on the stack of what is watched."""

    def __init__(self, device: torch.device, *, release: bool = True) -> None:
        """`release`: the profiler lets the GPU go afterwards, which takes a tenth of a second; without that
        later launches are slower."""
        self._device, self._releases = device, release
        self._troubles: list[str] = []
        self._pages: _CodePages | None = None
        self._marks: _Marks | None = None
        self._recording: profile | None = None
        self.report: dict[str, Any] = {"device": None} if device.type == "cuda" else {}
        self.report["interrupted"] = False

    def __enter__(self) -> Watched:
        if self._device.type == "cpu" and BUILT:
            self._pages = self._tried(_UNWATCHED, _CodePages)
            self._marks = _Marks(frozenset(BUILT))
        self._recording = self._tried("the profiler did not start", self._start)
        if self._recording is not None:
            sys.setprofile(self._marks)
        return self

    def __exit__(self, *_: object) -> None:
        if (recording := self._recording) is not None:
            sys.setprofile(None)
            raised = self._marks.raised if self._marks is not None else Counter()
            self._tried("the profile could not be read", lambda: self._stop(recording, raised))
        if self._pages is not None and self._marks is not None:
            failed = {name.partition(".")[0] for name in self._marks.raised}
            touched = self._tried(_UNWATCHED, self._pages.touched) or []
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
        recording = profile(
            use_device=device, use_kineto=True, record_shapes=True, experimental_config=settings
        )
        with record_function(MARK):
            pass  # its first use takes half a millisecond, which would count as a function's
        recording.__enter__()  # type: ignore[no-untyped-call]
        with record_function(BEGINS):
            pass
        return recording

    def _stop(self, recording: profile, raised: Counter[str]) -> None:
        try:
            self._fence()
        finally:
            events = _recorded(recording)
        self.report["interrupted"] = not _is_whole(events) and _records()
        spans, launched, allocations, graphs = _sorted(events)
        seen = attributed(spans, {by for name, _, by, _ in launched if by and not _MEMORY.match(name)})
        host = seen.totals
        for name, times in raised.items():  # a function that raised has done no work
            key = ("function", name)
            if key in host and host[key][0] <= times:
                del host[key]
        self.report["host"] = self._listed(host)
        self.report["elements"] = self._sized(seen.elements)
        self.report["allocations"] = [list(item) for item in allocations.most_common(MAX_ENTRIES)]
        if self._device.type == "cuda":
            if self._releases:
                self._release()
            if any(_FENCE in name for name, *_ in launched):
                self._report_device(seen, spans, [each for each in launched if _FENCE not in each[0]])
                self.report["busy"] = busy(launched, graphs) / 1e6
            else:
                self._troubles.append(NO_KERNELS)

    def _report_device(self, seen: Attributed, spans: list[Span], launched: list[Launched]) -> None:
        """Kernels, and how long they took for each of the operators on the host that launched them."""
        operators = {span.correlation: span.name for span in spans if "::" in span.name}
        kernels: Totals = {}
        spent: Totals = {}
        longest: dict[str, tuple[int, Any]] = {}
        for name, ns, launcher, event in launched:
            if ns >= longest.get(name, (0, event))[0]:
                longest[name] = (ns, event)
            by_torch = operators.get(launcher, "").partition("::")[0] in LIBRARY_NAMESPACES
            add(kernels, (BY_TORCH if by_torch else "kernel", name), 1, ns)
            if (owner := seen.owners.get(launcher)) is not None:
                add(spent, owner, 0, ns)
        self.report["device"] = self._listed(kernels)
        self.report["shapes"] = [
            [name[:MAX_NAME], *shape]
            for name, (_, event) in list(longest.items())[:MAX_ENTRIES]
            if (shape := _shape(event)) is not None
        ]
        self.report["spent"] = self._listed(
            {key: (seen.totals[key][0], ns) for key, (_, ns) in spent.items()}
        )

    def _fence(self) -> None:
        if self._device.type == "cuda":
            _sleep(1)

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

    @staticmethod
    def _sized(elements: dict[Key, int]) -> list[list[Any]]:
        """[kind, name, elements], the largest first."""
        ranked = sorted(elements.items(), key=lambda item: -item[1])[:MAX_ENTRIES]
        return [[kind, name[:MAX_NAME], count] for (kind, name), count in ranked]


def add_first_calls(
    report: dict[str, Any], kernels: Iterable[tuple[str, ...]], interpreted: Iterable[str]
) -> None:
    """Adds kernels that are compiled at their first call: names, files and texts of those that there are, and
    how often each was interpreted."""
    bounded = {
        (name[:MAX_NAME], file[-MAX_NAME:], *(t[:MAX_TEXT] for t in text)) for name, file, *text in kernels
    }
    report["made"] = sorted(bounded)[:MAX_KERNELS]
    report["interpreted"] = [
        [name[:MAX_NAME], n] for name, n in Counter(interpreted).most_common(MAX_ENTRIES)
    ]


def busy(launched: Iterable[Launched], graphs: Collection[int]) -> int:
    """Nanoseconds in which the busiest stream ran kernels, but for the loop's. Those of `graphs` may run
    beside each other when nobody watches: they do not count, nor do other streams."""
    total, until = Counter[int](), Counter[int]()
    for name, ns, _, event in sorted(launched, key=lambda each: each[3].start_ns()):
        if name in LOOP_KERNELS or _FENCE in name or event.correlation_id() in graphs:
            continue
        stream, start = event.device_resource_id(), event.start_ns()
        total[stream] += max(start + ns - max(start, until[stream]), 0)
        until[stream] = max(until[stream], start + ns)
    return max(total.values(), default=0)


def _recorded(recording: profile) -> list[Any]:
    """Ends a record; what it holds. Nothing where it was ended already."""
    with record_function(ENDS):
        pass
    try:
        recording.__exit__(None, None, None)  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        if "not running" not in str(error):
            raise
        return []
    results = recording.kineto_results
    return list(results.events()) if results is not None else []


def _is_whole(events: Iterable[Any]) -> bool:
    return {BEGINS, ENDS} <= {event.name() for event in events}


def _records() -> bool:
    """Whether the profiler works here at all, once nothing is told to look away any more."""
    torch._C._autograd._enable_record_function(True)
    recording = profile(use_kineto=True)
    recording.__enter__()  # type: ignore[no-untyped-call]
    with record_function(BEGINS):
        pass
    return _is_whole(_recorded(recording))


class Dispatched(TorchDispatchMode):
    """Sees the operators of torch that compute while it is entered, in this thread, from Python or C++."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Of torch's own: True would have its compiler imported at the first operator, for ten seconds."""
        return False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._totals: Totals = {}
        self._elements: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kind, name, is_library = _kind(func._schema.name)
        began = time.perf_counter_ns()
        result = func(*args, **(kwargs or {}))
        if kind == "operator" and is_library:
            add(self._totals, (kind, name), 1, time.perf_counter_ns() - began)
            operands = (leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor))
            self._elements[name] += passed_over(name, (operand.shape for operand in operands))
        return result

    @property
    def report(self) -> list[list[Any]]:
        """[name, count, milliseconds, elements] of each operator."""
        return [
            [name[:MAX_NAME], count, ns / 1e6, self._elements[name]]
            for (_, name), (count, ns) in list(self._totals.items())[:MAX_ENTRIES]
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
            mark = record_function(f"{MARK}{module}.{function.__name__}")
            mark.__enter__()  # type: ignore[no-untyped-call]
            self._open.append(mark)
        elif self._open:
            self._open.pop().__exit__(None, None, None)
            if event == "c_exception":
                self.raised[f"{module}.{function.__name__}"] += 1


class _CodePages:
    """Whether code of a built library runs, in whatever way it is called (ctypes, `functools.partial`, a C++
    thread).

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


def launch_shape(metadata: str) -> list[int] | None:
    """Threads of a block, blocks, registers of a thread, bytes of shared memory; None where it does not say.

    `metadata`: what CUPTI says of a kernel, as Kineto writes it: `"registers per thread": 32, "grid": [8, 1,
    1]` and more.
    """
    try:
        facts = json.loads(f"{{{metadata.strip().strip(',').removeprefix('{').removesuffix('}')}}}")
        numbers = [prod(facts["block"]), prod(facts["grid"])]
        numbers += [facts["registers per thread"], facts["shared memory"]]
    except (ValueError, KeyError, TypeError):
        return None
    return numbers if all(type(number) is int for number in numbers) else None


def _shape(event: Any) -> list[int] | None:
    """Of a kernel's launch; None with versions of torch that do not tell."""
    try:
        return launch_shape(event.metadata_json())
    except (AttributeError, RuntimeError):
        return None


def _sorted(events: Iterable[Any]) -> tuple[list[Span], list[Launched], Counter[str], set[int]]:
    """Spans on the host; kernels with nanoseconds and what launched them; calls that took memory; graphs, by
    the correlation of their launch."""
    spans: list[Span] = []
    launched: list[Launched] = []
    allocations: Counter[str] = Counter()
    graphs: set[int] = set()
    for event in events:
        name = event.name()
        if name in (BEGINS, ENDS) or (event.is_user_annotation() and not name.startswith(MARK)):
            continue
        if event.device_type() == DeviceType.CUDA:
            launched.append((name, event.duration_ns(), event.linked_correlation_id(), event))
        elif event.device_type() == DeviceType.CPU:
            if _OF_CUDA.match(name):  # numbered by CUPTI, and so like operators, which count for themselves
                allocations.update(allocation(name))
                if "GraphLaunch" in name:
                    graphs.add(event.correlation_id())
                continue
            start = event.start_ns()
            end = start + event.duration_ns()
            elements = passed_over(name, (shape for shape in event.shapes() if shape))
            spans.append(Span(name, start, end, event.start_thread_id(), event.correlation_id(), elements))
    return spans, launched, allocations, graphs
