"""New memory that holds large numbers, while a candidate is constructed and called untimed.

A kernel that adds into a workspace which nobody cleared is right as long as the allocator hands out fresh
pages: those are zero. In use they seldom are. So in `used_memory` what the allocators hand out is filled with
a byte, and the ordinary comparison finds who reads what it never wrote: no honest result depends on it.

On the host the C library fills what malloc, posix_memalign and realloc give (`torch.empty` and `new` come to
that), and what is freed; calloc still clears, and small blocks that its caches hand on keep what was in them.
On a GPU torch's caching allocator has blocks of its size classes which are filled beforehand. What a program
asks of CUDA itself (cudaMalloc, pinned memory, a captured graph's pool, other streams) is as it comes.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

import torch

from kernelproof.verifier.contestant.arena import FILLS

USED = FILLS[0]
"""1.5e16 as float32, 203 as float16, 1.5e9 as an index: finite, since a factor of 0 makes it vanish."""
SMALL, LARGE = 4 * (1 << 20,), 20 << 20
"""Bytes: torch gives up to 1 MiB from segments of 2 MiB, and up to 10 MiB from segments of 20."""
MOST, SHARE = 256 << 20, 16
"""Bytes of the block for larger tensors; and no more than this part of what is free."""
_M_PERTURB = -6
"""Of glibc's malloc.h. It fills with the complement of this parameter; 0 ends that."""


@contextlib.contextmanager
def used_memory(device: torch.device, nbytes: int = 0) -> Iterator[None]:
    """While it is entered, new memory is not zero. `nbytes`: of a call's inputs and outputs, about as many as
    its workspaces have. On a GPU what was filled stays in torch's cache: see `give_back`."""
    if device.type == "cuda":
        _fill_cache(device, nbytes)
    set_option = getattr(ctypes.CDLL(None), "mallopt", lambda *_: 0)  # musl has none
    set_option(_M_PERTURB, USED ^ 0xFF)
    try:
        yield
    finally:
        set_option(_M_PERTURB, 0)


def give_back(device: torch.device) -> None:
    """Gives the filled blocks back that nobody uses. Timed calls begin with what they allocated themselves,
    as the baseline's do."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _fill_cache(device: torch.device, nbytes: int) -> None:
    with contextlib.suppress(RuntimeError):  # short of memory, or an allocator of the candidate's own
        free, _ = torch.cuda.mem_get_info(device)
        sizes = [*SMALL, LARGE, min(nbytes, MOST)]
        if sum(sizes) <= free // SHARE:
            blocks = [torch.empty(size, dtype=torch.uint8, device=device).fill_(USED) for size in sizes]
            torch.cuda.synchronize(device)  # a stream of the candidate's waits for no fill of ours
            del blocks
