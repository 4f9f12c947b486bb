"""Whose kernels did the work in one traced call, and whether that is enough. docs/kernels.md has the rules.

The trace is made in the contestant, so it is a claim. What is read here is bounded and validated. Kernels are
attributed by their names, and by the libraries that the candidate had built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from pipeline.contestant.profiling import (
    BY_TORCH,
    LIBRARY_NAMESPACES,
    MAX_ENTRIES,
    MAX_NAME,
    allocation,
)
from pipeline.nouns import Build, BuildState, Kernels, Launch, Origin, Status, VerifySettings
from pipeline.referee.checks.libraries import holds_kernel
from pipeline.referee.checks.names import kernel_name
from pipeline.referee.checks.trials import Ask
from pipeline.referee.ledger import Ended, Ledger, clean
from pipeline.referee.seats.memory import SharedSlot

OWN_FLOOR = 0.01
LIBRARY_CEILING = 0.90
"""A fig leaf: own kernels take less than the one share of the time, libraries more than the other."""

TRACE_SECONDS = 60.0
"""A traced call may take this much longer than a plain one."""
MOST_LOOKUPS = 16
"""Names of a report that are looked for in the libraries' files, a second each at most."""
IMAGE_BYTES = 64 << 20
"""Most bytes that are read of a candidate's libraries together."""

_CANDIDATES, _LIBRARIES = (Origin.OWN, Origin.JIT), (Origin.LIBRARY, Origin.INDUCTOR)
"""What counts as the candidate's, and what as others' compute; copies are neither."""

_OWN = "Did a kernel of the candidate's own do the work?"
_PURE = "Are all compute operators the candidate's own?"
_NAMED = 5
"""Most names in a sentence."""

_UNMISTAKABLE = re.compile(
    r"^(?:at|at_cuda_detail|c10|cublas\w*|cusparse\w*|cusolver\w*|cufft\w*|cudnn\w*|cutlass\w*|cute|cask\w*"
    r"|magma\w*|fbgemm\w*|pytorch_flash|PyTorchMemEffAttention|nccl\w*|internal::gemvx)::"
    r"|^(?:ncclDevKernel|ncclKernel|nvjet_|cudnn_generated_|cutlass_\d|fmha_cutlass[FB]_|xmma_"
    r"|sm\d+_xmma_|sm\d+_\w*\d+x\d+)"
    r"|^(?:maxwell|volta|turing|ampere|hopper|blackwell)_\w*\d+x\d+"
)
"""Names in a library's namespace, or as only its generators make them (architecture and tile in one)."""

_USUAL = re.compile(
    r"^(?:gemv\w*|gemm[A-Z]\w*|gemmk1\w*|gemm_kernel2x2\w*|(?:cublas)?splitKreduce\w*|dot_kernel|reduce_1Block_kernel"
    r"|(?:asum|nrm2|scal|axpy|ger|rot|swap|iamax)_kernel\w*|(?:trsm|trmm|syrk|potrf|getrf|geqrf|laswp)\w*"
    r"|softmax_warp_\w*|cunn_\w*|(?:(?:vectorized|unrolled|legacy)_)?elementwise_kernel\w*|multi_tensor_apply\w*"
    r"|(?:im|ex)plicit_convolve\w*|precomputed_convolve\w*|convolve_\w*|\w*[wW]inograd\w*|fft2d_\w*"
    r"|(?:vector|regular|multi_bluestein)_fft\w*|n(?:chw|hwc)To\w*|n(?:chw|hwc)AddPadding\w*"
    r"|op_(?:generic_)?tensor_kernel\w*|bn_[fb]w_\w*|RNN_block\w*|persistRNN\w*|elemWiseRNNcell\w*"
    r"|(?:LSTM|GRU)_elementWise\w*|(?:dgrad|wgrad|fprop)\w*|fmha\w*|flash_(?:fwd|bwd)\w*|spin_kernel)$"
)
"""Base names of library kernels without a namespace, all of them C++ and so shown with parameters. A
candidate may use one too: its own library decides."""

_TEMPLATES = re.compile(r"(?:^|::|<)(?:cub|thrust)::|\bCUB_\d")
"""Header libraries: a candidate that compiles them into its extension runs its own build."""

_TYPES = re.compile(r"\b(?:loadstore_modifier_t|real_complex_args_t|RealComplex_st)\b")
"""Types of cuFFT's, whose kernels are compiled or linked when they are first used."""

_MOVES = re.compile(
    r"FillFunctor|direct_copy_kernel|(?:bfloat16|float16|float8\w*)_copy_kernel|arange_cuda_out"
)
_MEMORY = re.compile(r"^Mem(?:cpy|set)\b")
_INDUCTOR = re.compile(r"^triton_")


class Malformed(ValueError):
    """The contestant's report is not one."""


def kernels_matter(settings: VerifySettings) -> bool:
    """Whether anything depends on whose kernels ran; else they are only noted."""
    return settings.own_kernel or settings.purity != "any"


def check_kernels(
    ask: Ask,
    slot: SharedSlot,
    draw: Callable[[int, torch.device], list[Any]],
    ledger: Ledger,
    settings: VerifySettings,
    device: torch.device,
    *,
    again: bool = False,
    timed_next: bool = False,
) -> None:
    """Has one call traced and notes what ran. Raises Ended where the settings ask for more of the candidate's
    own, or its process dies.

    `again`: this is the second such call of this verification. `timed_next`: calls are timed after it.
    """
    after = " again" if again else ""
    slot.fill(draw(ledger.seed(f"traced{after}"), device))
    seed = ledger.seed(f"forward traced{after}")
    message = {"op": "profile", "seed": seed, "timed_next": timed_next, **slot.message()}
    seconds = settings.call_seconds + TRACE_SECONDS

    def traced() -> Kernels:
        try:
            return read(ask(message, seconds, Status.RUNTIME_ERROR), ledger.builds)
        except Ended as ended:
            if ended.status is not Status.RUNTIME_ERROR:
                raise
            return Kernels(trouble=f"the traced call failed: {ended.reason}"[:500], raised=True)

    kernels = traced()
    if kernels.raised:
        ask(message | {"op": "call"}, seconds, Status.RUNTIME_ERROR)  # who raises here too, raises
        kernels = traced()
    if ledger.kernels is None or kernels.launches:  # the later look, where it saw something
        ledger.kernels = kernels
    figures = {"own_share": kernels.own_share, "launches": len(kernels.launches)}
    if settings.own_kernel:
        why = lacking(kernels, ledger.builds)
        if why:
            ledger.kernels = kernels
            raise ledger.failed(Status.NO_CUSTOM_KERNEL, f"own_kernel{after}", _OWN, why, figures)
        ledger.passed(f"own_kernel{after}", _OWN, _summary(kernels, ledger.builds), figures)
    if settings.purity == "own-compute":
        others = library_compute(kernels)
        if others or kernels.raised:
            ledger.kernels = kernels
            seen = f"libraries computed too: {_names(others)}" if others else f"not seen: {kernels.trouble}"
            raise ledger.failed(Status.NO_CUSTOM_KERNEL, f"own_compute{after}", _PURE, seen, figures)
        if kernels.trouble and not kernels.launches:
            ledger.skipped(f"own_compute{after}", _PURE, kernels.trouble, figures)
        else:
            ledger.passed(f"own_compute{after}", _PURE, "no library computed anything", figures)


def lacking(kernels: Kernels, builds: Sequence[Build]) -> str:
    """Why no kernel of the candidate's own did the work; empty when one did.

    Without a trace it is enough that an extension was built.
    """
    built = any(build.state is BuildState.OK for build in builds)
    if kernels.raised:
        return f"it is right, but raises whenever it is traced, and only then: {kernels.trouble}"
    if kernels.trouble and not kernels.launches:
        return "" if built else "it is right, but it built no extension"
    own, others = _split(kernels)
    if not own:
        ran = f"; what ran is {_names(others)}" if others else ""
        return f"it is right, but no kernel of its own ran{ran}"
    if kernels.own_share is not None and kernels.own_share < OWN_FLOOR:
        total = sum(launch.ms or 0.0 for launch in kernels.launches)
        library = sum(launch.ms or 0.0 for launch in kernels.launches if launch.origin in _LIBRARIES) / total
        if library > LIBRARY_CEILING:
            share = f"{kernels.own_share:.2%} of the time, libraries {library:.0%}"
            return f"its own kernels take {share}: {_names(others)}"
    return ""


def library_compute(kernels: Kernels) -> tuple[str, ...]:
    """Operators and kernels of libraries and of torch.compile that computed: no copies, casts, fills."""
    return tuple(dict.fromkeys((*kernels.operators, *_split(kernels)[1])))


def _split(kernels: Kernels) -> tuple[list[str], list[str]]:
    """Names of the candidate's own launches, and of those of libraries: each once, though torch may launch a
    kernel that is launched elsewhere too."""
    own, others = (
        list(dict.fromkeys(launch.name for launch in kernels.launches if launch.origin in origins))
        for origins in (_CANDIDATES, _LIBRARIES)
    )
    return own, others


def read(reply: dict[str, Any], builds: Sequence[Build]) -> Kernels:
    """What a contestant's reply to `profile` comes to. Nonsense in it becomes `trouble`, never an error."""
    try:
        return _read(reply.get("profile"), builds)
    except Malformed as error:
        return Kernels(trouble=f"the report is malformed: {error}")


def _read(report: object, builds: Sequence[Build]) -> Kernels:
    if not isinstance(report, dict):
        raise Malformed("no object")
    trouble = report.get("trouble")
    if not isinstance(trouble, str):
        raise Malformed("trouble is no text")
    images = read_images(builds)
    modules = {build.name for build in builds if build.state is BuildState.OK}
    host = list(_host(_rows(report.get("host")), modules, images))
    if "device" in report:
        launches = _looked_up(
            [
                Launch(name=name, origin=origin(name, images, by_torch=kind == BY_TORCH), count=count, ms=ms)
                for kind, name, count, ms in _rows(report["device"])
            ]
        )
    else:
        launches = host
        if not any(launch.origin is Origin.OWN for launch in host):
            launches = host + [
                Launch(name=f"{name} (code)", origin=Origin.OWN, count=1) for name in _code(report, modules)
            ]
    return Kernels(
        launches=tuple(launches[:MAX_ENTRIES]),
        operators=tuple(launch.name for launch in host if launch.origin is Origin.LIBRARY),
        own_share=_own_share(launches),
        allocations=_allocations(report.get("allocations")),
        trouble=clean(trouble)[:1000],
    )


def _rows(value: object) -> list[tuple[str, str, int, float]]:
    """[kind, name, count, milliseconds]; nothing for None. Raises Malformed."""
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > MAX_ENTRIES:
        raise Malformed("a list of what ran is none, or too long")
    return [_row(item) for item in value]


def _row(item: object) -> tuple[str, str, int, float]:
    match item:
        case [str(kind), str(name), int(count), int() | float() as ms] if not isinstance(count, bool):
            if 0 < len(name) <= MAX_NAME and 0 < count < 1 << 40 and 0 <= ms < 1e12:
                return kind, clean(name), count, float(ms)
    raise Malformed("a line of what ran is none")


def _allocations(value: object) -> dict[str, int]:
    """Names of functions and how often each was called; nothing for None. Raises Malformed."""
    found: dict[str, int] = {}
    if not isinstance(value, list | None) or len(value or ()) > MAX_ENTRIES:
        raise Malformed("the list of allocations is none, or too long")
    for item in value or ():
        match item:
            case [str(name), int(count)] if allocation(name) == (name,) and 0 < count < 1 << 40:
                if not isinstance(count, bool) and len(name) <= MAX_NAME:
                    found[name] = count
                    continue
        raise Malformed("a line of the allocations is none")
    return found


def _host(
    rows: Iterable[tuple[str, str, int, float]], modules: set[str], images: Sequence[bytes]
) -> Iterator[Launch]:
    """Calls on the host. Functions of modules that were not built and operators made in Python are left out;
    what those call has lines of its own."""
    for kind, name, count, ms in rows:
        first = name.partition(".")[0]
        library = first in LIBRARY_NAMESPACES
        if kind == "copy" and library:
            yield Launch(name=name, origin=Origin.COPY, count=count, ms=ms)
        elif kind == "operator" and library:
            yield Launch(name=name, origin=Origin.LIBRARY, count=count, ms=ms)
        elif (kind == "function" and first in modules) or (
            kind == "operator" and any(first.encode() in image for image in images)
        ):
            yield Launch(name=name, origin=Origin.OWN, count=count, ms=ms)


def _code(report: dict[str, Any], modules: set[str]) -> list[str]:
    """Modules whose code ran, as the report says."""
    said = report.get("code", [])
    if not isinstance(said, list) or len(said) > MAX_ENTRIES:
        raise Malformed("the list of modules is none")
    return [name for name in said if isinstance(name, str) and name in modules]


def origin(name: str, images: Sequence[bytes] = (), *, by_torch: bool = False) -> Origin:
    """Whose kernel this is: by its name as a profiler gives it, and the libraries that were built.

    `by_torch`: an operator of torch launched it. That settles it: ATen compiles some of its kernels while it
    runs, and calls libraries whose kernels have any name.
    """
    known = kernel_name(name)
    if _MEMORY.match(name):
        return Origin.COPY
    if by_torch or _UNMISTAKABLE.match(known.plain):
        return _of_library(name)
    if any(_holds(image, known.base) for image in images):
        return Origin.OWN
    if _INDUCTOR.match(name):
        return Origin.INDUCTOR
    usual = re.search("[<(]", name) and _USUAL.match(known.base)
    if usual or _TEMPLATES.search(known.plain) or _TYPES.search(name):
        return _of_library(name)
    return Origin.JIT


def _of_library(name: str) -> Origin:
    return Origin.COPY if _MOVES.search(name) else Origin.LIBRARY


def _looked_up(launches: list[Launch]) -> list[Launch]:
    """The same; those that nothing else explains as a library's where one holds them, of the longest."""
    unknown = sorted(
        (n for n, launch in enumerate(launches) if launch.origin is Origin.JIT),
        key=lambda n: -(launches[n].ms or 0.0),
    )
    for n in unknown[:MOST_LOOKUPS]:
        if holds_kernel(launches[n].name):
            launches[n] = launches[n].model_copy(update={"origin": _of_library(launches[n].name)})
    return launches


def _holds(image: bytes, base: str) -> bool:
    """Whether a library holds this kernel: mangled (length, then name) or, `extern "C"`, as it is."""
    if not base:
        return False
    plain = base.encode()
    return b"%d%s" % (len(plain), plain) in image or b"\0%s\0" % plain in image


def read_images(builds: Sequence[Build]) -> list[bytes]:
    """The bytes of the libraries that were built, IMAGE_BYTES together at most."""
    images: list[bytes] = []
    left = IMAGE_BYTES
    for path in dict.fromkeys(build.library for build in builds if build.library is not None):
        try:
            with Path(path).open("rb") as file:
                images.append(file.read(left))
        except OSError:  # the cache was cleared meanwhile: its kernels then count as `jit`, which is own too
            continue
        left -= len(images[-1])
    return images


def _own_share(launches: Sequence[Launch]) -> float | None:
    times = [launch.ms for launch in launches if launch.ms is not None]
    total = sum(times)
    if len(times) < len(launches) or total <= 0:
        return None
    own = sum(launch.ms or 0.0 for launch in launches if launch.origin in _CANDIDATES)
    return min(own / total, 1.0)


def _summary(kernels: Kernels, builds: Sequence[Build]) -> str:
    own, _ = _split(kernels)
    if not own:
        return f"not seen ({kernels.trouble}); it built {len(builds)} extension(s)"
    share = f", {kernels.own_share:.0%} of the time" if kernels.own_share is not None else ""
    return f"{_names(own)}{share}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
