"""New memory that holds large numbers, while a candidate is constructed and called untimed.

A kernel that adds into a workspace which nobody cleared is right as long as the allocator hands out fresh
pages: those are zero. In use they seldom are. So in `used_memory` what the allocators hand out is filled with
a byte, and the ordinary comparison finds who reads what it never wrote: no honest result depends on it.

On the host the C library fills what malloc, posix_memalign and realloc give (`torch.empty` and `new` come to
that), and what is freed; calloc still clears, and small blocks that its caches hand on keep what was in them.
On a GPU all that torch's cache holds free for the current stream is filled, and that is some of each size
class. Memory that a program asks of CUDA itself (cudaMalloc, pinned memory), for another stream or while it
captures a graph is as it comes.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable, Iterator

import torch

USED = 0x59
"""3.8e15 as float32, 171 as float16, 1.5e9 as an index; finite, so that a factor of 0 makes it vanish. It is
none of the bytes of margins."""
SMALL, SMALL_SEGMENT, LARGE_SEGMENT = 1 << 20, 2 << 20, 20 << 20
"""Bytes: torch takes tensors of up to `SMALL` from segments of the first size, others of up to 10 MiB from
those of the second, and larger ones from segments of their own or a larger hole."""
MOST, SHARE = 256 << 20, 16
"""Bytes of the hole for larger tensors, at most; and the part of the free memory that no more is taken of."""
_M_PERTURB = -6
"""Of glibc's malloc.h. It fills with the complement of this parameter; 0 ends that."""
_set_option = getattr(ctypes.CDLL(None), "mallopt", lambda *_: 0)  # musl has none


@contextlib.contextmanager
def used_memory(device: torch.device, nbytes: int = 0) -> Iterator[None]:
    """While it is entered, new memory is not zero. `nbytes`: of a call's inputs and outputs, about as many as
    its workspaces have. On a GPU what was filled stays in torch's cache: see `give_back`."""
    if device.type == "cuda":
        _fill_cache(device, nbytes)
    _set_option(_M_PERTURB, USED ^ 0xFF)
    try:
        yield
    finally:
        _set_option(_M_PERTURB, 0)


def give_back(device: torch.device) -> None:
    """Gives the filled blocks back that nobody uses. Timed calls begin with what they allocated themselves,
    as the baseline's do."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _fill_cache(device: torch.device, nbytes: int) -> None:
    def take(sizes: Iterable[int]) -> list[torch.Tensor]:
        return [torch.empty(size, dtype=torch.uint8, device=device).fill_(USED) for size in sizes]

    wanted, small = [min(nbytes, MOST), LARGE_SEGMENT], [SMALL] * (SMALL_SEGMENT // SMALL)
    with contextlib.suppress(RuntimeError):  # short of memory, or an allocator of the candidate's own
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        if unused < sum(wanted) <= torch.cuda.mem_get_info(device)[0] // SHARE:
            take(wanted)
        take(small)
        filled = take(_holes(device))
        torch.cuda.synchronize(device)  # a stream of the candidate's waits for no fill of ours
        del filled


def _holes(device: torch.device) -> list[int]:
    """Sizes that fill all holes in torch's segments, largest first: torch takes the smallest that will do."""
    sizes, stream = [], torch.cuda.current_stream(device).cuda_stream
    segments = torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call]
    for segment in segments:
        if segment["stream"] != stream or any(segment["segment_pool_id"]):  # a graph's
            continue
        for block in segment["blocks"]:
            left = block["size"] if block["state"] == "inactive" else 0
            if segment["segment_type"] == "large":
                sizes += [left] if left > SMALL else []
                continue
            sizes += [SMALL] * (left // SMALL) + [left % SMALL] * (left % SMALL > 0)
    return sorted(sizes, reverse=True)
