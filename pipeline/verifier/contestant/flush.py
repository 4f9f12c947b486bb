"""Empties a GPU's L2 cache before a timed call, in one launch beside which nothing else runs.

The launch takes every thread slot of every multiprocessor, and its blocks wait for each other before they
begin. Work that a candidate queued elsewhere, in another stream or by another thread, has to end before that,
where the outer clock counts it, or to begin after it, beside the call. Then the launch reads numbers of twice
the cache's size. It only reads: lines that were written would have to be written back during the call.

A process that skipped this could do as much work of its own unseen. So it leaves a proof: the sum of all
numbers, each mixed with the sum that the launch before left. A step needs the step before, and cannot be left
out. The same seed always gives the same sum.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch

KERNEL = "flush"
SOURCE = r"""
extern "C" __global__ void __launch_bounds__(1024, 2)
flush(const uint4* numbers, unsigned many, unsigned* sums, unsigned step, unsigned* arrived,
      unsigned held_ns) {
  unsigned long long began, now;
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    // A kernel that never ends would keep blocks from coming. Its own time is lost; the call goes on.
    const long long latest = clock64() + 200000000LL;
    while ((int)(*(volatile unsigned*)arrived - gridDim.x * (step + 1)) < 0 && clock64() < latest) {}
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
  }
  __syncthreads();
  unsigned before = *(volatile unsigned*)(sums + step % 3) + step * 0x9E3779B9u;  // MurmurHash3's last steps:
  before = (before ^ before >> 16) * 0x85EBCA6Bu;
  before = (before ^ before >> 13) * 0xC2B2AE35u;
  before ^= before >> 16;
  if (blockIdx.x == 0 && threadIdx.x == 0) sums[(step + 2) % 3] = 0;
  unsigned sum = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < many; i += gridDim.x * blockDim.x) {
    const uint4 v = numbers[i];
    sum += ((v.x ^ before) * 0x2C1B3C6Du) ^ (v.y + before * 5u);
    sum = sum * 3u + (((v.z ^ before) * 0x2C1B3C6Du) ^ (v.w + before));
  }
  for (int apart = 16; apart; apart >>= 1) sum += __shfl_down_sync(~0u, sum, apart);
  if ((threadIdx.x & 31) == 0) atomicAdd(sums + (step + 1) % 3, sum);
  if (threadIdx.x == 0)
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - began < held_ns);
  __syncthreads();
}
"""
HELD_US = 190
"""So long a flush holds the device at least. Launches of a forward are queued meanwhile: so the speed of the
host just then does not count as the device's time."""


@functools.cache
def compiled(device: torch.device) -> bytes:
    """The kernel for this device as a cubin; empty for a CPU. Takes a fifth of a second, and imports what a
    contestant does without: the referee does it once for all of them."""
    if device.type != "cuda":
        return b""
    from torch.cuda._utils import _nvrtc_compile

    major, minor = torch.cuda.get_device_capability(device)
    binary, _ = _nvrtc_compile(SOURCE, KERNEL, compute_capability=f"{major}{minor}")
    return binary


class Flush:
    """One flush a call. Does nothing with zero bytes, as on a CPU."""

    def __init__(self, nbytes: int, device: torch.device, cubin: bytes = b"", held_us: int = HELD_US) -> None:
        """`cubin`: what `compiled` gives. Raises RuntimeError where the driver does not take it."""
        self._many = nbytes // 16
        if not self._many:
            return
        self._numbers = torch.zeros(4 * self._many, dtype=torch.int32, device=device)
        self._sums, self._arrived = torch.zeros(2, 3, dtype=torch.int32, device=device)
        self._driver, self._module = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        self._kernel, self._device = ctypes.c_void_p(), device
        self._call("cuModuleLoadData", ctypes.byref(self._module), cubin)
        self._call("cuModuleGetFunction", ctypes.byref(self._kernel), self._module, KERNEL.encode())
        of = torch.cuda.get_device_properties(device)
        self._blocks, self._threads = 2 * of.multi_processor_count, of.max_threads_per_multi_processor // 2
        self._source = torch.Generator(device)
        self._steps, numbers = ctypes.c_uint(0), self._numbers.data_ptr()
        values = (
            *(ctypes.c_void_p(numbers), ctypes.c_uint(self._many)),
            *(ctypes.c_void_p(self._sums.data_ptr()), self._steps),
            *(ctypes.c_void_p(self._arrived.data_ptr()), ctypes.c_uint(1000 * held_us)),
        )
        self._arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self._values = values
        """Kept, since `_arguments` only points to them."""

    def begin(self, seed: int) -> None:
        """Numbers for another block of calls."""
        if self._many:
            self._source.manual_seed(seed)
            self._numbers.random_(generator=self._source)
            self._sums.zero_()
            self._arrived.zero_()
            self._steps.value = 0

    def __call__(self) -> None:
        if self._many:
            stream = ctypes.c_void_p(torch.cuda.current_stream(self._device).cuda_stream)
            sizes = (self._blocks, 1, 1, self._threads, 1, 1, 0)
            self._call("cuLaunchKernel", self._kernel, *sizes, stream, self._arguments, None)
            self._steps.value += 1

    @property
    def proof(self) -> int:
        """The sum after the last step. Waits for the device."""
        return int(self._sums[self._steps.value % 3]) if self._many else 0

    def _call(self, name: str, *arguments: Any) -> None:
        if code := getattr(self._driver, name)(*arguments):
            raise RuntimeError(f"{name} failed with error {code} of the CUDA driver")
