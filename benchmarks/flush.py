"""Work beside a flush, and how cold the flush leaves the cache: ``python -m benchmarks.flush``, on a GPU.

A prototype beside the flush of today, `contestant.loop.Flush`. `Release` is one launch:

1. Its blocks take every thread slot of every multiprocessor, and wait for each other. No other kernel runs
   beside it, and a kernel that was left running keeps it from going on.
2. It takes the mask off the inputs of one call, in place. Without its key they could not be read before.
3. It reads a buffer of numbers that the process does not know, twice the cache in size. Lines are left clean:
   where they were written, a call that follows pays for writing them back.

Prints microseconds, medians, after the work was queued behind a kernel that waits, so launches cost nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch

from kernelproof.verifier.contestant.loop import Flush

SOURCE = r"""
extern "C" __global__ void __launch_bounds__(1024, 2)
release(const uint4* numbers, int many, unsigned* sums, int step, unsigned* arrived, unsigned* not_alone,
        uint4* input, int masked, unsigned key0, unsigned key1) {
  const int first = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    const long long began = clock64();
    while (*(volatile unsigned*)arrived < gridDim.x * (2 * step + 1))
      if (clock64() - began > 200000000LL) { *not_alone = 1; break; }
  }
  __syncthreads();
  for (int i = first; i < masked; i += all) {
    uint4 v = input[i];
    unsigned a = key0 ^ (unsigned)i, b = key1;
    #pragma unroll
    for (int round = 0; round < 6; round++) {
      const unsigned high = __umulhi(a, 0xD2511F53u), low = a * 0xD2511F53u;
      a = high ^ b ^ (key0 + round * 0x9E3779B9u);
      b = low ^ (key1 + round * 0xBB67AE85u);
    }
    v.x ^= a; v.y ^= b; v.z ^= a * 0x85EBCA6Bu; v.w ^= b * 0xC2B2AE35u;
    input[i] = v;
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    while (masked && *(volatile unsigned*)arrived < gridDim.x * (2 * step + 2)) {}
  }
  __syncthreads();
  const unsigned before = sums[step];
  unsigned sum = before;
  for (int i = first; i < many; i += all) {
    const uint4 v = numbers[i];
    sum += ((v.x ^ before) * 0x2C1B3C6Du) ^ (v.y + before * 5u);
    sum = sum * 3u + (((v.z ^ before) * 0x2C1B3C6Du) ^ (v.w + before));
  }
  for (int apart = 16; apart; apart >>= 1) sum += __shfl_down_sync(~0u, sum, apart);
  if ((threadIdx.x & 31) == 0) atomicAdd(sums + step + 1, sum);
}
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
extern "C" __global__ void wait_for(volatile unsigned* stop) { while (!*stop) __nanosleep(200); }
"""
HELD_CYCLES = 1_000_000
"""Of the kernel behind which work is queued: longer than the host takes for any of it."""

Work = Callable[[], object]

_cuda: Any = torch.cuda
"""Much of it has no types."""


class Release:
    """The launch above, over and over. `input` is masked or unmasked in place: twice gives it back."""

    def __init__(self, nbytes: int, device: torch.device, steps: int = 100_000) -> None:
        properties = torch.cuda.get_device_properties(device)
        self._grid = (2 * properties.multi_processor_count, 1, 1)
        self._block = (properties.max_threads_per_multi_processor // 2, 1, 1)
        self._kernel = _cuda._compile_kernel(SOURCE, "release")
        self._numbers = torch.randint(-(2**31), 2**31, (nbytes // 4,), dtype=torch.int32, device=device)
        self._sums = torch.zeros(steps + 1, dtype=torch.int32, device=device)
        self._arrived, self.not_alone = torch.zeros(2, 1, dtype=torch.int32, device=device)
        self._step = 0

    def __call__(self, value: torch.Tensor | None = None, key: tuple[int, int] = (5, 6)) -> None:
        masked = 0 if value is None else value.numel() * value.element_size() // 16
        counts = [self._sums, self._step, self._arrived, self.not_alone]
        inputs = [self._numbers if value is None else value, masked, *key]
        self._kernel(self._grid, self._block, [self._numbers, self._numbers.numel() // 4, *counts, *inputs])
        self._step += 1


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


def print_flushes(flushes: dict[str, Work], release: Release, device: torch.device) -> None:
    for name, flush in flushes.items():
        print(f"flush {name}: {took_us(flush):.1f} us")
    for megabytes in (1, 16, 64, 256):
        value = torch.randn(megabytes << 18, device=device)
        kept = value.clone()
        took = took_us(partial(release, value))
        print(f"release with {megabytes} MB unmasked: {took:.1f} us; right: {torch.equal(value, kept)}")
    stop = torch.zeros(1, dtype=torch.int32, device=device)
    with _cuda.stream(_cuda.Stream()):
        _cuda._compile_kernel(SOURCE, "wait_for")((4, 1, 1), (32, 1, 1), [stop])
    release()
    _cuda.current_stream().synchronize()
    with _cuda.stream(_cuda.Stream()):
        stop.fill_(1)
    _cuda.synchronize()
    print("a kernel that was left running is seen:", bool(release.not_alone))


def print_cold(flushes: dict[str, Work], release: Release, device: torch.device) -> None:
    for megabytes in (1, 4, 16, 64):
        value = torch.randn(256 * megabytes, 1024, device=device)
        before: dict[str, Work] = {
            **flushes,
            "release and unmask": partial(release, value),
            "nothing": lambda: None,
        }
        took = {name: took_us(partial(value.sum, -1), before=work) for name, work in before.items()}
        print(
            f"row sums of {megabytes} MB:",
            ", ".join(f"after {name} {us:.1f} us" for name, us in took.items()),
        )
    gather = _cuda._compile_kernel(SOURCE, "gather")
    for megabytes in (12, 25, 40):
        table, out = torch.randn(256 * megabytes, 1024, device=device), torch.empty(4096, 1024, device=device)
        rows = torch.randint(256 * megabytes, (4096,), device=device)
        for name, flush in flushes.items():
            call = partial(gather, (4096, 1, 1), (256, 1, 1))
            plain, kept = (
                took_us(partial(call, [table, rows, out, 256, hint]), before=flush) for hint in (0, 1)
            )
            print(f"gather from {megabytes} MB after {name}: {plain:.1f} us, with evict_last {kept:.1f} us")


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    device = torch.device(torch.cuda.current_device())
    nbytes = 2 * torch.cuda.get_device_properties(device).L2_cache_size
    today, release = Flush(nbytes, device), Release(nbytes, device)
    today.begin(1)
    flushes: dict[str, Work] = {"of today": today, "release": release}
    print(torch.cuda.get_device_name(device), torch.__version__)
    with torch.no_grad():
        print_flushes(flushes, release, device)
        print_cold(flushes, release, device)
        for name, (forward, shape) in programs(device).items():
            calls: list[Work] = [partial(forward, torch.randn(*shape, device=device)) for _ in range(16)]
            for which, flush in flushes.items():
                behind, early = beside(flush, calls[0])
                print(f"{name}, {which}: behind the flush {behind:.1f} us, begun beside it {early:.1f} us")
            print(f"{name}: all calls at once are {at_once(calls):.2f} times as fast")


if __name__ == "__main__":
    main()
