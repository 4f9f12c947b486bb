"""The work between two calls on a GPU: ``python -m benchmarks.flush``.

Needs a GPU. Prints how cold the flush leaves the cache, and what it costs to unmask inputs and to digest
results: microseconds, medians, after the work was queued behind a kernel that waits, so launches cost
nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch

from kernelproof.verifier.contestant.between_calls import Digests, Release, compiled
from kernelproof.verifier.referee import sides

SOURCE = r"""
extern "C" __global__ void
gather(const float4* table, const long long* rows, float4* out, int width, int hint) {
  unsigned long long keep;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
  const float4* from = table + rows[blockIdx.x] * width;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    float4 v;
    if (hint) asm volatile("ld.global.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], %5;"
                           : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(from + i), "l"(keep));
    else v = from[i];
    __stcs(out + (long long)blockIdx.x * width + i, v);
  }
}
"""
HELD_CYCLES = 1_000_000
"""Of the kernel behind which work is queued: longer than the host takes for any of it."""

Work = Callable[[], object]

_cuda: Any = torch.cuda
"""Much of it has no types."""


def took_us(*work: Work, before: Work = lambda: None, times: int = 40) -> float:
    """Median of what `work` takes on the device, each time after `before`."""
    found: list[float] = []
    for _ in range(times):
        _cuda._sleep(HELD_CYCLES)
        before()
        start, stop = _cuda.Event(enable_timing=True), _cuda.Event(enable_timing=True)
        start.record()
        for part in work:
            part()
        stop.record()
        _cuda.synchronize()
        found.append(1e3 * start.elapsed_time(stop))
    return median(found)


def print_cold(flush: Work, device: torch.device) -> None:
    for megabytes in (1, 4, 16, 64):
        value = torch.randn(256 * megabytes, 1024, device=device)
        cold, warm = (took_us(partial(value.sum, -1), before=work) for work in (flush, lambda: None))
        print(f"row sums of {megabytes} MB: {cold:.1f} us, without a flush {warm:.1f} us")
    gather = _cuda._compile_kernel(SOURCE, "gather")
    for megabytes in (12, 25, 40):
        table, out = torch.randn(256 * megabytes, 1024, device=device), torch.empty(4096, 1024, device=device)
        rows = torch.randint(256 * megabytes, (4096,), device=device)
        call = partial(gather, (4096, 1, 1), (256, 1, 1))
        plain, kept = (took_us(partial(call, [table, rows, out, 256, hint]), before=flush) for hint in (0, 1))
        print(f"gather from {megabytes} MB: {plain:.1f} us, with evict_last {kept:.1f} us")


def print_passes(release: Release, digests: Digests, device: torch.device) -> None:
    for megabytes in (1, 16, 256, 1024):
        value = torch.zeros(megabytes << 18, device=device)
        unmask = took_us(partial(release.mask, [value], 1))
        digest = took_us(partial(digests.digest, [value], 1))
        print(f"{megabytes} MB: unmasked in {unmask:.1f} us, digested in {digest:.1f} us")


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    device = torch.device(torch.cuda.current_device())
    flushed = torch.empty(sides.flush_bytes(device), dtype=torch.uint8, device=device)
    release = Release(device, compiled(device), flushed)
    print(torch.cuda.get_device_name(device), torch.__version__)
    print(f"flush: {took_us(release.flush):.1f} us")
    with torch.no_grad():
        print_cold(release.flush, device)
        print_passes(release, Digests(device, compiled(device)), device)


if __name__ == "__main__":
    main()
