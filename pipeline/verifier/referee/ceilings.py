"""What a device does at best: bytes and operations a second, measured once and kept.

A ceiling is the best that was ever seen, so every figure is the fastest of several repeats of several ways,
not a median. The figures are kept in a file for each environment whose times may be compared.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import torch

from kernelproof.hashing import sha256_json
from kernelproof.types import Environment
from kernelproof.types.measurement import Ceilings
from kernelproof.workspace import write_in_one_step

METHOD = 2
"""Counted up when ceilings are measured in another way: kept ceilings are then measured again."""
AA_HOURS = 24
AA_LARGE, AA_TRIES, AA_LARGE_MINUTES = 0.03, 3, 10
"""An A/A spread above this fraction is measured again for the next candidates, so many times in all. The
smallest counts: other programs beside the measurement, such as a compiler, only make it larger. After so many
minutes a large spread is forgotten, since the other programs may have ended: it would take every claim of a
whole day away."""
GPU_BYTES, CPU_BYTES = 1 << 30, 1 << 28
"""Buffers far larger than the last-level cache of a GPU (60 MB on an H200), and of most processors."""
GPU_SIDE, CPU_SIDE = 8192, 1024
"""Rows of the square matrices that are multiplied."""
GPU_REPEATS, CPU_REPEATS = 8, 3
EIGHT_BITS = 2.0
"""Operations in 8 bits for one in 16, on GPUs whose 8-bit products torch cannot run: so since Turing."""
_NAMED = ("torch", "cuda", "driver", "platform", "cpu", "cores", "host_sha256")


def measure(device: torch.device) -> Ceilings:
    """Measures a device: under a second on a GPU, about one on a CPU.

    Memory: the fastest of copying, reading (sums and maxima) and filling, read and written bytes counted.
    Operations: the fastest product of square matrices, 2 n^3 operations each. A GPU short of memory is
    measured with buffers of a quarter of what is free. Raises torch.OutOfMemoryError when that fails too.
    """
    with torch.no_grad():
        return Ceilings(
            bytes_per_s=_bytes_per_s(device),
            operations_per_s=_operations_per_s(device),
            cache_bytes=_cache_bytes(device),
            aa_spread=0.0,
            measured=datetime.now(UTC).isoformat(),
        )


def known(
    device: torch.device,
    cache: Path,
    environment: Environment,
    aa: Callable[[], float] | None,
) -> Ceilings:
    """The ceilings of a device, measured once for each environment and then read from below `cache`.

    `aa` measures how far two processes that run the same are apart, as a fraction. It is called when that was
    not done within 24 hours (ten minutes where what was found is large), and when it is large and may be
    measured again. Without it `aa_spread` is what is known of that time, else 0. A file that cannot be read
    is measured again; one that cannot be written costs the next process a second.
    """
    path = cache / "ceilings" / f"{_fingerprint(environment)}.json"
    now = datetime.now(UTC)
    kept = _read(path)
    found = kept.ceilings if kept else measure(device)
    if kept is None:
        _write(path, found, None)
    seen = kept.spread if kept and kept.spread and kept.spread.is_of(now) else None
    if aa is not None and (seen is None or seen.may_be_smaller()):
        seen = seen.with_another(aa()) if seen else _Spread(aa(), now)
        _write(path, found, seen)
    return found.model_copy(update={"aa_spread": seen.smallest if seen else 0.0})


def measured_again(device: torch.device, cache: Path, environment: Environment) -> Ceilings:
    """The ceilings after another measurement: the higher of each rate, which is kept.

    For a claim beyond them. The first measurement may have been made on a hot GPU, or beside other work.
    Raises torch.OutOfMemoryError.
    """
    path = cache / "ceilings" / f"{_fingerprint(environment)}.json"
    kept, found = _read(path), measure(device)
    if kept is not None:
        rates = ("bytes_per_s", "operations_per_s")
        highest = {rate: max(getattr(found, rate), getattr(kept.ceilings, rate)) for rate in rates}
        found = kept.ceilings.model_copy(update=highest)
    _write(path, found, kept.spread if kept else None)
    return found


@dataclass(frozen=True)
class _Spread:
    """The A/A spread of a day: the smallest that was seen, when the first was, and how many were measured."""

    smallest: float
    measured: datetime
    tries: int = 1

    def is_of(self, now: datetime) -> bool:
        """Not older than AA_HOURS, or AA_LARGE_MINUTES where it is large, nor from the future: then a clock
        was set."""
        large = self.smallest > AA_LARGE
        longest = timedelta(minutes=AA_LARGE_MINUTES) if large else timedelta(hours=AA_HOURS)
        return timedelta() <= now - self.measured <= longest

    def may_be_smaller(self) -> bool:
        return self.smallest > AA_LARGE and self.tries < AA_TRIES

    def with_another(self, spread: float) -> _Spread:
        return _Spread(min(self.smallest, spread), self.measured, self.tries + 1)


@dataclass(frozen=True)
class _Kept:
    """The content of a file."""

    ceilings: Ceilings
    spread: _Spread | None


def _fingerprint(environment: Environment) -> str:
    """Equal where the figures may be used again."""
    named = environment.model_dump(mode="json", include={*_NAMED, "gpu"}, exclude={"gpu": {"index"}})
    return sha256_json([METHOD, named])[:32]


def _read(path: Path) -> _Kept | None:
    """The content of the file, or None where there is none that makes sense."""
    try:
        data = json.loads(path.read_text())
        ceilings = Ceilings.model_validate(data["ceilings"])
        at = data["aa_measured"]
        tries = int(data.get("aa_tries", 1))
        kept = _Kept(ceilings, None if at is None else _Spread(ceilings.aa_spread, _time(at), tries))
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None
    rates = (ceilings.bytes_per_s, ceilings.operations_per_s)
    sound = all(math.isfinite(rate) and rate > 0 for rate in rates) and ceilings.cache_bytes >= 0
    return kept if sound and math.isfinite(ceilings.aa_spread) and ceilings.aa_spread >= 0 else None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _write(path: Path, ceilings: Ceilings, spread: _Spread | None) -> None:
    kept = ceilings.model_copy(update={"aa_spread": spread.smallest if spread else 0.0})
    data = {
        "ceilings": kept.model_dump(mode="json"),
        "aa_measured": spread.measured.isoformat() if spread else None,
        "aa_tries": spread.tries if spread else 0,
    }
    with suppress(OSError):  # a full or read-only cache must not cost a verification
        path.parent.mkdir(parents=True, exist_ok=True)
        write_in_one_step(path, json.dumps(data, indent=1).encode())


def _best(device: torch.device, work: Callable[[], object]) -> float:
    """Seconds of the fastest of several runs of `work`, after one that is not counted."""
    work()
    if device.type != "cuda":
        times = []
        for _ in range(CPU_REPEATS):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return min(times)
    marks: list[Any] = [
        torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        for _ in range(GPU_REPEATS + 1)
    ]
    with torch.cuda.device(device):
        marks[0].record()
        for mark in marks[1:]:
            work()
            mark.record()
        marks[-1].synchronize()
    return min(float(first.elapsed_time(second)) for first, second in itertools.pairwise(marks)) / 1e3


def _bytes_per_s(device: torch.device) -> float:
    size = CPU_BYTES
    if device.type == "cuda":
        size = min(GPU_BYTES, torch.cuda.mem_get_info(device)[0] // 4) // 256 * 256
    source = torch.ones(size // 4, device=device)
    target = torch.empty_like(source)
    ways: list[tuple[int, Callable[[], object]]] = [
        (2 * size, lambda: target.copy_(source)),
        (size, source.sum),
        (size, target.zero_),
    ]
    if device.type == "cuda":
        half, wide = source.view(torch.bfloat16), source.view(torch.float64)
        ways += [
            (size, source.amax),
            (size, lambda: target.fill_(1.0)),
            (2 * size, lambda: target.view(torch.float64).copy_(wide)),
            (size, half.sum),
            (size, wide.sum),
            (size, wide.amax),
        ]
    return max(nbytes / _best(device, way) for nbytes, way in ways)


def _operations_per_s(device: torch.device) -> float:
    if device.type != "cuda":
        return max(_product(device, dtype, CPU_SIDE) for dtype in _worthwhile(device))
    with _tf32():
        found = {
            dtype: _product(device, dtype, GPU_SIDE)
            for dtype in (torch.float32, torch.float16, torch.bfloat16)
        }
    narrow = _product_in_8_bits(device, GPU_SIDE)
    return max(*found.values(), narrow or EIGHT_BITS * found[torch.bfloat16])


def _worthwhile(device: torch.device) -> Iterator[torch.dtype]:
    """float32; and bfloat16 where a small product is faster in it: it is slow without instructions for it."""
    yield torch.float32
    small = CPU_SIDE // 4
    if _product(device, torch.bfloat16, small) > _product(device, torch.float32, small):
        yield torch.bfloat16


def _product(device: torch.device, dtype: torch.dtype, side: int) -> float:
    one, other = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(one)
    return 2 * side**3 / _best(device, lambda: torch.mm(one, other, out=out))


def _product_in_8_bits(device: torch.device, side: int) -> float | None:
    """With float8 operands, or None where this torch cannot multiply them on this GPU."""
    scaled_mm: Any = getattr(torch, "_scaled_mm", None)
    if scaled_mm is None or torch.cuda.get_device_capability(device) < (8, 9):
        return None
    one, other = (torch.randn(side, side, device=device).to(torch.float8_e4m3fn) for _ in range(2))
    scale = torch.ones((), device=device)

    def work() -> object:
        return scaled_mm(
            one, other.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=True
        )

    try:
        return 2 * side**3 / _best(device, work)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, ValueError):
        return None


@contextmanager
def _tf32() -> Iterator[None]:
    """Lets float32 products run in TF32, and sets things back."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _cache_bytes(device: torch.device) -> int:
    """Bytes of the last-level cache; 0 where the machine does not say."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    found = 0
    for path in sizes:
        with suppress(OSError, ValueError):
            text = path.read_text().strip()
            unit = units.get(text[-1:], 1)
            found = max(found, int(text.rstrip("KMG")) * unit)
    return found
