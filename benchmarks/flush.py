"""The work between two calls on a GPU: ``python -m benchmarks.flush``.

Needs a GPU. Prints how cold the flush leaves the cache, what work begun beside it gains, and what it costs to
unmask inputs and to digest results: microseconds, medians, after the work was queued behind a kernel that
waits, so launches cost nothing. Also prints how many times as fast 16 calls are when all of them may begin at
once: so much a candidate would gain that finds all inputs of a block before its first call.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch

from kernelproof.verifier.contestant.between_calls import Flush, Release, compiled
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


def beside(flush: Work, call: Work) -> tuple[float, float]:
    """The time of a call behind the flush, and of one that may begin with the flush on a stream of high
    priority; both without the flush's own time."""
    side, ready, done = _cuda.Stream(priority=-1), _cuda.Event(), _cuda.Event()

    def early() -> None:
        ready.record()
        side.wait_event(ready)
        with _cuda.stream(side):
            call()
            done.record()
        flush()
        _cuda.current_stream().wait_event(done)

    alone = took_us(flush)
    return took_us(flush, call) - alone, took_us(early) - alone


def at_once(calls: list[Work]) -> float:
    """How many times as fast calls are in eight streams as one behind the other."""
    streams = [_cuda.Stream() for _ in range(8)]

    def together() -> None:
        ready = _cuda.Event()
        ready.record()
        for number, call in enumerate(calls):
            with _cuda.stream(streams[number % 8]):
                _cuda.current_stream().wait_event(ready)
                call()
        for stream in streams:
            _cuda.current_stream().wait_stream(stream)

    def held() -> None:
        _cuda._sleep(20 * HELD_CYCLES)

    return took_us(*calls, before=held, times=8) / took_us(together, before=held, times=8)


def programs(
    device: torch.device,
) -> dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], tuple[int, ...]]]:
    """Forwards and the shapes of their inputs."""

    def linear(width: int, out: int) -> Callable[[torch.Tensor], torch.Tensor]:
        weight = torch.randn(width, out, device=device)
        return lambda x: torch.nn.functional.gelu(x @ weight)

    convolve = torch.nn.Conv3d(3, 24, 3, device=device)
    return {
        "linear, gelu 1024x1024x1024": (linear(1024, 1024), (1024, 1024)),
        "linear, gelu 128x1024x512": (linear(1024, 512), (128, 1024)),
        "linear, gelu 1024x8192x8192": (linear(8192, 8192), (1024, 8192)),
        "softmax 4096x4096": (lambda x: x.softmax(-1), (4096, 4096)),
        "softmax 16x16384": (lambda x: x.softmax(-1), (16, 16384)),
        "relu 4096x16384": (torch.relu, (4096, 16384)),
        "conv3d, min, softmax": (lambda x: convolve(x).amin(2).softmax(1), (16, 3, 24, 32, 32)),
    }


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


def print_release(release: Release, device: torch.device) -> None:
    for megabytes in (1, 16, 256, 1024):
        value = torch.zeros(megabytes << 18, device=device)
        unmask = took_us(partial(release.mask, [value], *release.placed([1])))
        digest = took_us(partial(release.digest, [value]))
        print(f"{megabytes} MB: unmasked in {unmask:.1f} us, digested in {digest:.1f} us")


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    device = torch.device(torch.cuda.current_device())
    flush = Flush(sides.flush_numbers(device), device, compiled(device))
    flush.begin()
    print(torch.cuda.get_device_name(device), torch.__version__)
    print(f"flush: {took_us(flush):.1f} us")
    with torch.no_grad():
        print_cold(flush, device)
        print_release(Release(device, compiled(device)), device)
        for name, (forward, shape) in programs(device).items():
            calls: list[Work] = [partial(forward, torch.randn(*shape, device=device)) for _ in range(16)]
            behind, early = beside(flush, calls[0])
            print(f"{name}: behind the flush {behind:.1f} us, begun beside it {early:.1f} us;", end=" ")
            print(f"all calls at once are {at_once(calls):.2f} times as fast")


if __name__ == "__main__":
    main()
