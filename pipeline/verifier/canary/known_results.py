"""Small kernels whose results are whole numbers, known exactly: what the canary asks of a GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch

PATTERN_BYTES = 256 << 20
LEAST_BYTES = 16 << 20
INNER = {torch.float32: 1024, torch.float16: 64}
"""The inner size of each matrix product."""


Probe = Callable[["torch.device"], str | None]
"""Runs something with a known result; None, or what was wrong."""


def reach(device: torch.device) -> str | None:
    """One word, there and back. On a GPU this makes the context."""
    word = int(torch.tensor(97).to(device).cpu())
    return None if word == 97 else f"97 came back as {word}"


def prepare() -> None:
    """Computes on the host what `product` compares with."""
    for inner in INNER.values():
        _factors(inner)


def product(device: torch.device) -> str | None:
    """A matrix product of whole numbers, once on the plain and once on the half-precision units.

    Every partial sum is exact: below 1024 * 4 * 4 = 2^14 in float32, and below 64 * 4 * 4 = 2^10 in float16,
    which hold whole numbers up to 2^24 and 2^11.
    """
    for dtype, inner in INNER.items():
        left, right, wanted = _factors(inner)
        got = left.to(device, dtype) @ right.to(device, dtype)
        wrong = int((got.cpu().double() != wanted).sum())
        if wrong:
            return f"{wrong} of {wanted.numel()} elements of a {dtype} matrix product came out wrong"
    return None


@functools.cache
def _factors(inner: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two matrices of whole numbers from -4 to 4, 1024 x inner and inner x 1024, and their product."""
    rows = torch.arange(1024).view(-1, 1)
    columns = torch.arange(inner).view(1, -1)
    left = (rows * 7 + columns * 3) % 9 - 4
    right = ((rows * 5 + columns * 11) % 9 - 4).t().contiguous()
    return left, right, left.double() @ right.double()


def pattern(device: torch.device) -> str | None:
    """A few hundred MiB written with a pattern, read back, inverted and read again; and its checksum.

    Word i holds i * factor modulo 2^64, so the sum of n words is factor * n (n - 1) / 2 modulo 2^64.
    """
    size = PATTERN_BYTES if device.type == "cuda" else LEAST_BYTES
    if device.type == "cuda":
        size = min(size, torch.cuda.mem_get_info(device)[0] // 4)  # three more of this size come and go
        if size < LEAST_BYTES:
            return f"only {torch.cuda.mem_get_info(device)[0] >> 20} MiB of its memory are free"
    count, factor = size // 8, 0x9E3779B97F4A7C15 - (1 << 64)
    words = torch.arange(count, device=device)
    words *= factor
    wanted = (factor * (count * (count - 1) // 2)) % (1 << 64)
    if int(words.sum()) % (1 << 64) != wanted:
        return f"the checksum of {size >> 20} MiB is wrong"
    words.bitwise_not_().bitwise_not_()
    wrong = int((words != torch.arange(count, device=device) * factor).sum())
    return f"{wrong} of {count} words did not hold their pattern" if wrong else None


def counts(device: torch.device) -> str | None:
    """A histogram by atomic additions: every one of 97 bins holds a known count."""
    per_bin, bins = 4096, 97
    places = torch.arange(per_bin * bins, device=device) % bins
    found = torch.zeros(bins, dtype=torch.int64, device=device)
    found.index_add_(0, places, torch.ones_like(places))
    wrong = int((found.cpu() != per_bin).sum())
    return f"{wrong} of {bins} bins of atomic additions came out wrong" if wrong else None


PROBES: tuple[Probe, ...] = (product, pattern, counts)


def examine(device: torch.device, probes: Sequence[Probe] = PROBES) -> str | None:
    """What the first probe that failed saw, None when all passed. Each is run to its end on the device."""
    for probe in probes:
        try:
            trouble = probe(device)
        except RuntimeError as error:  # what the driver reports, out of memory too
            trouble = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        if trouble:
            return f"{probe.__name__}: {trouble}"
    return None
