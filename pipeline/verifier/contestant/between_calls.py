"""Between two calls on a GPU the loop makes the inputs readable, empties the cache, and fixes the result.

An example, one call: the referee sends a key; with it `mask` makes inputs of the random bits that lay there;
the flush empties the L2 cache; the forward runs; `digest` says what came out. The next key comes for that
digest alone. So a call's work lies between its key and its digest, whoever runs the loop: before, its
inputs are unknown, and after, its result is known.

**Masks.** The bits of an input are combined with a keystream by exclusive or (ChaCha of eight rounds, with
the key, the input's number and the place as its block's words).

**Digests.** Every 256 bytes become 32, until they are few enough for the host, which hashes the rest. A
thread mixes 64 words, 32 apart, into eight, by the same permutation with what went in added [1]. A result
with other low bits that has a digest named before cannot be found.

**The flush** is one launch beside which nothing else runs. It takes every thread slot of every
multiprocessor, and its blocks wait for each other before they begin. Work that a candidate queued elsewhere,
in another stream or by another thread, has to end before that, where the outer clock counts it, or to begin
after it, beside the call. Then the launch reads numbers of twice the cache's size. It only reads: lines that
were written would have to be written back during the call.

A process that skipped this could do as much work of its own unseen. So it leaves a proof: the sum of all
numbers, each mixed with the call's key and the sum that the launch before left. A step needs the step before,
and cannot be left out, nor be made before the key is known. The same seed and keys always give the same sum.

[1] D. J. Bernstein, "The Rumba20 compression function", 2007; the permutation is that of "ChaCha, a variant
of Salsa20", 2008.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Iterable
from typing import Any

import torch

from kernelproof.verifier.contestant.arena import bytes_of

KERNEL = "flush"
LOOP_KERNELS = (KERNEL, "mask", "digest")
SOURCE = r"""
typedef unsigned u32;
typedef unsigned long long u64;

__device__ __forceinline__ void quarter(u32& a, u32& b, u32& c, u32& d) {
  a += b; d = __funnelshift_l(d ^ a, d ^ a, 16);
  c += d; b = __funnelshift_l(b ^ c, b ^ c, 12);
  a += b; d = __funnelshift_l(d ^ a, d ^ a, 8);
  c += d; b = __funnelshift_l(b ^ c, b ^ c, 7);
}

__device__ __forceinline__ void permute(u32* s) {
#pragma unroll
  for (int round = 0; round < 8; round += 2) {
    quarter(s[0], s[4], s[8], s[12]); quarter(s[1], s[5], s[9], s[13]);
    quarter(s[2], s[6], s[10], s[14]); quarter(s[3], s[7], s[11], s[15]);
    quarter(s[0], s[5], s[10], s[15]); quarter(s[1], s[6], s[11], s[12]);
    quarter(s[2], s[7], s[8], s[13]); quarter(s[3], s[4], s[9], s[14]);
  }
}

extern "C" __global__ void
mask(uint4* bytes, u64 blocks, u32 number, u32 k0, u32 k1, u32 k2, u32 k3) {
  for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < blocks; at += gridDim.x * (u64)blockDim.x) {
    const u32 start[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u, k0, k1, k2, k3,
                           k0, k1, k2, k3, (u32)at, (u32)(at >> 32), number, 0};
    u32 s[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) s[i] = start[i];
    permute(s);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint4 v = bytes[4 * at + i];
      v.x ^= s[4 * i] + start[4 * i];
      v.y ^= s[4 * i + 1] + start[4 * i + 1];
      v.z ^= s[4 * i + 2] + start[4 * i + 2];
      v.w ^= s[4 * i + 3] + start[4 * i + 3];
      bytes[4 * at + i] = v;
    }
  }
}

__device__ __forceinline__ u32 word(const unsigned char* bytes, u64 many, u64 at) {
  if (4 * at + 4 <= many && ((u64)bytes & 3) == 0) return ((const u32*)bytes)[at];
  u32 value = 0;
  for (u64 i = 4 * at; i < 4 * at + 4 && i < many; ++i) value |= (u32)bytes[i] << 8 * (i & 3);
  return value;
}

extern "C" __global__ void
digest(const unsigned char* bytes, u64 many, u32* digests) {
  const u64 thread = blockIdx.x * (u64)blockDim.x + threadIdx.x, first = thread / 32 * 2048 + thread % 32;
  u32 kept[8] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u,
                 (u32)many, (u32)(many >> 32), (u32)thread, (u32)(thread >> 32)};
  for (int step = 0; step < 8; ++step) {
    u32 s[16], in[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      in[i] = word(bytes, many, first + 32 * (8 * step + i));
      s[i] = kept[i];
      s[8 + i] = in[i];
    }
    permute(s);
#pragma unroll
    for (int i = 0; i < 8; ++i) kept[i] = (s[i] + kept[i]) ^ (s[8 + i] + in[i]);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) digests[8 * thread + i] = kept[i];
}

extern "C" __global__ void __launch_bounds__(1024, 2)
flush(const uint4* numbers, unsigned many, unsigned* sums, unsigned step, unsigned* arrived,
      unsigned held_ns, unsigned key) {
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
  before = (before ^ key ^ before >> 16) * 0x85EBCA6Bu;
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
"""So long a flush holds the device, unless it is told a shorter time. Launches of a forward are queued
meanwhile: so the speed of the host just then does not count as the device's time."""
FEW_BYTES = 4096
"""So many bytes of digests, or of a result, the host hashes."""
_TILE, _THREADS = 8192, 256
"""Bytes that a warp's digests hold; threads of a block."""
_INPUT_BLOCKS = 2048
"""Most blocks that unmask an input: each thread then has several of its 64 bytes."""

_sha256, _cpu, _string_at = hashlib.sha256, torch.Tensor.cpu, ctypes.string_at


@functools.cache
def compiled(device: torch.device) -> bytes:
    """The kernels for this device as a cubin; empty for a CPU. Takes a fifth of a second, and imports what a
    contestant does without: the referee does it once for all of them."""
    if device.type != "cuda":
        return b""
    from torch.cuda._utils import _nvrtc_compile

    major, minor = torch.cuda.get_device_capability(device)
    binary, _ = _nvrtc_compile(SOURCE, KERNEL, compute_capability=f"{major}{minor}")
    return binary


class _Kernels:
    """The kernels, loaded into this process. Raises RuntimeError where the driver does not take them."""

    def __init__(self, device: torch.device, cubin: bytes) -> None:
        self._driver, self._device = ctypes.CDLL("libcuda.so.1"), device
        self._module, self._found = ctypes.c_void_p(), dict[str, ctypes.c_void_p]()
        torch.empty(1, device=device)  # makes the context current
        self._call("cuModuleLoadData", ctypes.byref(self._module), cubin)
        for name in LOOP_KERNELS:
            self._found[name] = ctypes.c_void_p()
            self._call("cuModuleGetFunction", ctypes.byref(self._found[name]), self._module, name.encode())

    def launch(self, name: str, blocks: int, threads: int, arguments: Any) -> None:
        """On the current stream. `arguments`: what `_packed` gives."""
        stream = ctypes.c_void_p(torch.cuda.current_stream(self._device).cuda_stream)
        sizes = (blocks, 1, 1, threads, 1, 1, 0)
        self._call("cuLaunchKernel", self._found[name], *sizes, stream, arguments, None)

    def _call(self, name: str, *arguments: Any) -> None:
        if code := getattr(self._driver, name)(*arguments):
            raise RuntimeError(f"{name} failed with error {code} of the CUDA driver")


def _packed(*values: Any) -> Any:
    """A kernel's arguments, as the driver takes them, with the values, which may change."""
    packed: Any = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    packed.values = values
    return packed


_kernels = functools.cache(_Kernels)


class Release:
    """Masks of inputs and digests of results, the same in referee and contestant."""

    def __init__(self, device: torch.device, cubin: bytes) -> None:
        """`cubin`: what `compiled` gives. Raises RuntimeError where the driver does not take it."""
        self._kernels, self._device = _kernels(device, cubin), device
        self._levels: dict[int, list[torch.Tensor]] = {}

    def mask(self, inputs: Iterable[torch.Tensor], key: int) -> None:
        """Masks inputs that lie in an arena, with all bytes of their room; or unmasks them, with the same
        key of 128 bits. Queues the work."""
        words = [ctypes.c_uint(key >> shift & 0xFFFFFFFF) for shift in (0, 32, 64, 96)]
        for number, tensor in enumerate(inputs):
            if blocks := bytes_of(tensor) // 64:
                place = ctypes.c_void_p(tensor.data_ptr()), ctypes.c_ulonglong(blocks)
                arguments = _packed(*place, ctypes.c_uint(number), *words)
                self._kernels.launch("mask", min(_INPUT_BLOCKS, -(-blocks // 256)), 256, arguments)

    def digest(self, results: Iterable[torch.Tensor]) -> str:
        """A hash of the bits of contiguous results, in 64 characters. Waits for the current stream."""
        found = _sha256()
        for tensor in results:
            left = tensor.detach().resolve_conj().resolve_neg()
            many = left.numel() * left.element_size()
            place = left.data_ptr()
            for level in self._levels_of(many) if left.is_cuda else ():
                arguments = _packed(
                    *(ctypes.c_void_p(place), ctypes.c_ulonglong(many)), ctypes.c_void_p(level.data_ptr())
                )
                self._kernels.launch("digest", -(-level.numel() // 32 // _THREADS), _THREADS, arguments)
                left, many, place = level, level.numel(), level.data_ptr()
            host = _cpu(left)
            found.update(_string_at(host.data_ptr(), many) if many else b"")
        return found.hexdigest()

    def _levels_of(self, many: int) -> list[torch.Tensor]:
        """Where the digests of so many bytes go, the digests of those, and so on."""
        if many not in self._levels:
            sizes, left = list[int](), many
            while left > FEW_BYTES:
                left = -(-left // _TILE) * 1024
                sizes.append(left)
            # A launch has whole blocks: the last one may write beyond the digests that count.
            whole = 32 * _THREADS
            self._levels[many] = [
                torch.empty(-(-size // whole) * whole, dtype=torch.uint8, device=self._device)[:size]
                for size in sizes
            ]
        return self._levels[many]


class Flush:
    """One flush a call. Does nothing with zero bytes, as on a CPU."""

    def __init__(self, nbytes: int, device: torch.device, cubin: bytes = b"", held_us: int = HELD_US) -> None:
        """`cubin`: what `compiled` gives. Raises RuntimeError where the driver does not take it."""
        self._many = nbytes // 16
        if not self._many:
            return
        self._numbers = torch.zeros(4 * self._many, dtype=torch.int32, device=device)
        self._sums, self._arrived = torch.zeros(2, 3, dtype=torch.int32, device=device)
        self._kernels = _kernels(device, cubin)
        of = torch.cuda.get_device_properties(device)
        self._blocks, self._threads = 2 * of.multi_processor_count, of.max_threads_per_multi_processor // 2
        self._source = torch.Generator(device)
        self._steps, self._key = ctypes.c_uint(0), ctypes.c_uint(0)
        self._held_ns = ctypes.c_uint(1000 * held_us)
        self._arguments = _packed(
            *(ctypes.c_void_p(self._numbers.data_ptr()), ctypes.c_uint(self._many)),
            *(ctypes.c_void_p(self._sums.data_ptr()), self._steps),
            *(ctypes.c_void_p(self._arrived.data_ptr()), self._held_ns, self._key),
        )

    def begin(self, seed: int, held_us: float | None = None) -> None:
        """Numbers for another block of calls, and how long flushes hold the device from now on."""
        if self._many:
            if held_us is not None:
                self._held_ns.value = int(1000 * held_us)
            self._source.manual_seed(seed)
            self._numbers.random_(generator=self._source)
            self._sums.zero_()
            self._arrived.zero_()
            self._steps.value = 0

    def __call__(self, key: int = 0) -> None:
        """`key`: the call's, of which 32 bits count."""
        if self._many:
            self._key.value = key & 0xFFFFFFFF
            self._kernels.launch(KERNEL, self._blocks, self._threads, self._arguments)
            self._steps.value += 1

    @property
    def proof(self) -> int:
        """The sum after the last step. Waits for the device."""
        return int(self._sums[self._steps.value % 3]) if self._many else 0
