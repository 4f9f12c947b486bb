"""The kernels that run before and after a call on a GPU.

The referee makes a call's inputs readable, empties the cache, and says go: all in a process of its own, which
no candidate can reach, on memory that both map. The contestant's process then runs the forward, and fixes the
result by a digest. An example, one call, with `call_page.CallPage` for what both processes read and write:

    referee's device        flush, mask, flush, go
    contestant's process    meanwhile queues call_begins and the forward's kernels
    contestant's device     call_begins, the forward, a digest of each result, and one of nothing

The first flush leaves the cache as it is for either side, and brings the referee's process to the device. The
referee's clock runs from before the mask until the last digest is there. Before the mask nothing is known of
the inputs. The mask and the flush are the referee's own work: whatever a candidate has running on the device
meanwhile has them wait, on the clock. After the digest the result is known. So a call's work lies on the
clock, whoever runs the contestant's loop.

**Masks.** The bits of an input are combined with a keystream by exclusive or (ChaCha of eight rounds, with
the key, the input's number and the place as its block's words).

**The flush** reads bytes of twice the cache's size. It only reads: lines that were written would have to be
written back during the call.

**call_begins** waits for go, and takes the digests' key from the page. A device runs one process at a time:
it goes on with the contestant's when the referee has nothing more for it, and takes a tenth of a millisecond
for that. The call is queued by then, so the speed of the host just then does not count as the device's time.

**Digests.** A thread chains words of a result, which lie apart, into eight, by the permutation of the masks
with what went in added [1]. A block's threads do so with each other's eight, and the last block to end with
those of all blocks. They are the next result's key. At the end all threads of the device digest nothing under
the last key: a processor needs milliseconds for that, so nobody answers without the device. A result with
other low bits that has a digest named before cannot be found.

[1] D. J. Bernstein, "The Rumba20 compression function", 2007; the permutation is that of "ChaCha, a variant
of Salsa20", 2008.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from kernelproof.verifier.contestant import call_page
from kernelproof.verifier.contestant.arena import bytes_of, reset_persisting_lines
from kernelproof.verifier.contestant.call_page import CallPage

LOOP_KERNELS = "call_begins", "digest"
"""Those that run in a contestant's process."""
_PLACES = "GO", "KEY", "DIGEST", "DIGESTED"
_LAYOUT = "".join(f"#define {name} {getattr(call_page, name)}\n" for name in _PLACES)
SOURCE = (
    _LAYOUT
    + r"""
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
mask(uint4* bytes, u64 blocks, u32 number, uint4 key) {
  for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < blocks; at += gridDim.x * (u64)blockDim.x) {
    const u32 start[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u, key.x, key.y, key.z, key.w,
                           key.x, key.y, key.z, key.w, (u32)at, (u32)(at >> 32), number, 0};
    u32 s[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) s[i] = start[i];
    permute(s);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint4 v = bytes[i * blocks + at];
      v.x ^= s[4 * i] + start[4 * i];
      v.y ^= s[4 * i + 1] + start[4 * i + 1];
      v.z ^= s[4 * i + 2] + start[4 * i + 2];
      v.w ^= s[4 * i + 3] + start[4 * i + 3];
      bytes[i * blocks + at] = v;
    }
  }
}

extern "C" __global__ void __launch_bounds__(1024, 2)
flush(const uint4* bytes, u64 many, u32* sink) {
  u32 sum = 0;
  for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < many; at += gridDim.x * (u64)blockDim.x) {
    const uint4 v = bytes[at];
    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x9E3779B9u) *sink = sum;
}

extern "C" __global__ void
go(volatile u32* page, u32 call, uint4 key) {
  page[KEY] = key.x; page[KEY + 1] = key.y; page[KEY + 2] = key.z; page[KEY + 3] = key.w;
  __threadfence_system();
  page[GO] = call;
}

extern "C" __global__ void
call_begins(const volatile u32* page, u32* key, u32 call) {
  while (page[GO] != call) {}
  __threadfence_system();
  for (int i = 0; i < 4; ++i) { key[i] = page[KEY + i]; key[4 + i] = 0; }
}

__device__ __forceinline__ u32 word(const unsigned char* bytes, u64 many, u64 at) {
  if (4 * at + 4 <= many && ((u64)bytes & 3) == 0) return ((const u32*)bytes)[at];
  u32 value = 0;
  for (u64 i = 4 * at; i < 4 * at + 4 && i < many; ++i) value |= (u32)bytes[i] << 8 * (i & 3);
  return value;
}

__device__ __forceinline__ void chain(u32* kept, const u32* in) {
  u32 s[16];
#pragma unroll
  for (int i = 0; i < 8; ++i) { s[i] = kept[i]; s[8 + i] = in[i]; }
  permute(s);
#pragma unroll
  for (int i = 0; i < 8; ++i) kept[i] = (s[i] + kept[i]) ^ (s[8 + i] + in[i]);
}

__device__ __forceinline__ void begin(u32* kept, u64 a, u32 b, u32 c) {
  const u32 start[8] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u, (u32)a, (u32)(a >> 32), b, c};
  for (int i = 0; i < 8; ++i) kept[i] = start[i];
}

__device__ void together(u32* kept) {
  __shared__ u32 others[128][9];
  for (unsigned left = 128; left; left >>= 1) {
    __syncthreads();
    if (threadIdx.x >= left && threadIdx.x < 2 * left)
      for (int i = 0; i < 8; ++i) others[threadIdx.x - left][i] = kept[i];
    __syncthreads();
    if (threadIdx.x < left) chain(kept, others[threadIdx.x]);
  }
}

extern "C" __global__ void __launch_bounds__(256)
digest(const unsigned char* bytes, u64 many, u32* key, volatile u32* digests, u32* arrived,
       volatile u32* page, u32 call) {
  __shared__ bool ends;
  const u64 threads = gridDim.x * 256ull, thread = blockIdx.x * 256ull + threadIdx.x;
  u32 kept[8], in[8];
  begin(kept, many, (u32)thread, gridDim.x);
  for (int i = 0; i < 8; ++i) in[i] = key[i];
  chain(kept, in);
  for (u64 at = thread; 4 * at < many; at += 8 * threads) {
#pragma unroll
    for (int i = 0; i < 8; ++i) in[i] = word(bytes, many, at + i * threads);
    chain(kept, in);
  }
  together(kept);
  if (threadIdx.x == 0) {
    for (int i = 0; i < 8; ++i) digests[8 * blockIdx.x + i] = kept[i];
    __threadfence();
    ends = atomicAdd(arrived, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!ends) return;
  begin(kept, ~many, threadIdx.x, gridDim.x);
  for (u32 at = threadIdx.x; at < gridDim.x; at += 256) {
    for (int i = 0; i < 8; ++i) in[i] = digests[8 * at + i];
    chain(kept, in);
  }
  together(kept);
  if (threadIdx.x) return;
  for (int i = 0; i < 8; ++i) key[i] = kept[i];
  *arrived = 0;
  if (page) {
    for (int i = 0; i < 8; ++i) page[DIGEST + i] = kept[i];
    __threadfence_system();
    page[DIGESTED] = call;
  }
}
"""
)
_DIGESTED, _DIGESTS = 32 << 10, 1056
"""Bytes of a result for each block, until there are so many: eight for each multiprocessor of an H100."""
_INPUT_BLOCKS = 2048
"""Most blocks that mask an input: each thread then has several of its 64 bytes."""

_PAGES = 4
"""Pages that stay pinned: those of both sides, and of a pair before. Pinning takes the driver's lock, which a
process that comes up on another GPU of the host may hold for a tenth of a second."""
_MAPPED = 2
"""CU_MEMHOSTREGISTER_DEVICEMAP."""

_synchronize = torch.cuda.synchronize
_raw_stream: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)


@functools.cache
def compiled(device: torch.device) -> bytes:
    """The kernels for this device as a cubin; empty for a CPU. Takes a fifth of a second, and imports what a
    contestant does without: the referee does it once for all of them."""
    if device.type != "cuda":
        return b""
    from torch.cuda._utils import _nvrtc_compile

    major, minor = torch.cuda.get_device_capability(device)
    binary, _ = _nvrtc_compile(SOURCE, "digest", compute_capability=f"{major}{minor}")
    return binary


class _Kernels:
    """The kernels, loaded into this process. Raises RuntimeError where the driver does not take them."""

    def __init__(self, device: torch.device, cubin: bytes) -> None:
        driver = self._driver = ctypes.CDLL("libcuda.so.1")
        self._launch, self._stream = driver.cuLaunchKernel, functools.partial(_raw_stream, device.index or 0)
        self._module, self._functions = ctypes.c_void_p(), dict[str, ctypes.c_void_p]()
        self._pages = dict[CallPage, int]()
        torch.empty(1, device=device)  # makes the context current
        _checked("cuModuleLoadData", driver.cuModuleLoadData(ctypes.byref(self._module), cubin))

    def launch(self, name: str, blocks: int, threads: int, arguments: Any) -> None:
        """On the current stream. `arguments`: what `_packed` gives."""
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = ctypes.c_void_p()
            code = self._driver.cuModuleGetFunction(ctypes.byref(function), self._module, name.encode())
            _checked("cuModuleGetFunction", code)
        stream = ctypes.c_void_p(self._stream())
        code = self._launch(function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, None)
        _checked("cuLaunchKernel", code)

    def address_of(self, page: CallPage) -> int:
        """The device's address of a page, which stays pinned until `_PAGES` others are."""
        if page not in self._pages:
            if len(self._pages) == _PAGES:
                self._unpin(next(iter(self._pages)))
            self._pages[page] = self._pin(page)
        return self._pages[page]

    def _pin(self, page: CallPage) -> int:
        driver, address, of_device = self._driver, ctypes.c_void_p(page.address), ctypes.c_void_p()
        code = driver.cuMemHostRegister_v2(address, ctypes.c_size_t(page.nbytes), _MAPPED)
        _checked("cuMemHostRegister", code)
        code = driver.cuMemHostGetDevicePointer_v2(ctypes.byref(of_device), address, 0)
        _checked("cuMemHostGetDevicePointer", code)
        return of_device.value or 0

    def _unpin(self, page: CallPage) -> None:
        del self._pages[page]
        _checked("cuMemHostUnregister", self._driver.cuMemHostUnregister(ctypes.c_void_p(page.address)))


def _checked(name: str, code: int) -> None:
    if code:
        raise RuntimeError(f"{name} failed with error {code} of the CUDA driver")


def _packed(*values: Any) -> Any:
    """A kernel's arguments, as the driver takes them, with the values, which may change."""
    packed: Any = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    packed.values = values
    return packed


def _words(key: int) -> Any:
    """A key of 128 bits, as a kernel takes it."""
    return (ctypes.c_uint * 4)(*(key >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96)))


_kernels = functools.cache(_Kernels)


class Release:
    """The referee's work on the device before a call."""

    def __init__(self, device: torch.device, cubin: bytes, flushed: torch.Tensor) -> None:
        """`cubin`: what `compiled` gives. `flushed`: what is read to empty the cache. Raises RuntimeError
        where the driver does not take it."""
        self._kernels, self._device = _kernels(device, cubin), device
        self._page = ctypes.c_void_p()
        self._marks: Any = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
        of = torch.cuda.get_device_properties(device)
        self._blocks, self._threads = 2 * of.multi_processor_count, of.max_threads_per_multi_processor // 2
        self._flushed, self._sink = flushed, torch.zeros(1, dtype=torch.int32, device=device)
        places = ctypes.c_void_p(flushed.data_ptr()), ctypes.c_ulonglong(flushed.nbytes // 16)
        self._flush = _packed(*places, ctypes.c_void_p(self._sink.data_ptr()))

    def mask(self, inputs: Sequence[torch.Tensor], key: int) -> None:
        """Masks inputs that lie in an arena, with all bytes of their room, or makes them readable again with
        the same key of 128 bits. Queues the work."""
        words = _words(key)
        for number, tensor in enumerate(inputs):
            if blocks := bytes_of(tensor) // 64:
                place = ctypes.c_void_p(tensor.data_ptr()), ctypes.c_ulonglong(blocks), ctypes.c_uint(number)
                grid = min(_INPUT_BLOCKS, -(-blocks // 256))
                self._kernels.launch("mask", grid, 256, _packed(*place, words))

    def settle(self) -> None:
        """Waits until what was queued is done, and takes back lines that were set aside in the cache."""
        _synchronize(self._device)
        reset_persisting_lines()

    def mark(self, which: int) -> None:
        """Queues one of the two marks of `took_ms`."""
        self._marks[which].record()

    @property
    def took_ms(self) -> float:
        """Milliseconds of the device between the marks. Waits for them: a page may say anything."""
        self._marks[1].synchronize()
        return float(self._marks[0].elapsed_time(self._marks[1]))

    def flush(self) -> None:
        """Empties the cache. Queues the work."""
        self._kernels.launch("flush", self._blocks, self._threads, self._flush)

    @contextmanager
    def of(self, page: CallPage) -> Iterator[None]:
        """While it is entered, `go` writes to this page."""
        self._page.value = self._kernels.address_of(page)
        try:
            yield
        finally:
            _synchronize(self._device)

    def go(self, call: int, key: int) -> None:
        """Says that the inputs of the call with this number are readable, when what was queued is done.
        `key`: 128 bits, for the digests."""
        self._kernels.launch("go", 1, 1, _packed(self._page, ctypes.c_uint(call), _words(key)))


class Digests:
    """Digests of results, the same in referee and contestant. Between the end of a forward and its digest the
    clock of a call runs: so launches are packed beforehand, and there is one wait."""

    def __init__(self, device: torch.device, cubin: bytes) -> None:
        """`cubin`: what `compiled` gives. Raises RuntimeError where the driver does not take it."""
        self._kernels, self._device = _kernels(device, cubin), device
        self._key = torch.zeros(8, dtype=torch.int32, device=device)
        self._of_blocks = torch.zeros(8 * (_DIGESTS + 1), dtype=torch.int32, device=device)
        self._page, self._call = ctypes.c_void_p(), ctypes.c_uint()
        self._place, self._many, self._last = ctypes.c_void_p(), ctypes.c_ulonglong(), ctypes.c_void_p()
        key, of_blocks = (ctypes.c_void_p(each.data_ptr()) for each in (self._key, self._of_blocks))
        arrived = ctypes.c_void_p(self._of_blocks[-1:].data_ptr())
        self._begin = _packed(self._page, key, self._call)
        self._digest = _packed(self._place, self._many, key, of_blocks, arrived, self._last, self._call)

    def begin(self, call: int) -> None:
        """The first launch of the call with this number: what is queued after it waits for go."""
        self._call.value = call
        self._kernels.launch("call_begins", 1, 1, self._begin)

    def listen(self, page: CallPage) -> None:
        """Keys come on this page, and digests are written to it."""
        self._page.value = self._kernels.address_of(page)

    def fix(self, results: Sequence[torch.Tensor]) -> None:
        """Names the digest of the call's results. Waits for the device: what other streams still do must not
        run beside the next call."""
        self._chain(results, self._page.value)

    def digest(self, results: Sequence[torch.Tensor], key: int) -> bytes:
        """The 32 bytes that `fix` names for these results, which are contiguous, under this key of 128 bits.
        Waits for the device."""
        words = torch.frombuffer(bytearray(key.to_bytes(32, "little")), dtype=torch.int32)
        self._key.copy_(words)
        self._chain(results, None)
        return self._key.cpu().numpy().tobytes()

    def _chain(self, results: Sequence[torch.Tensor], page: int | None) -> None:
        kept = [each.detach().resolve_conj().resolve_neg().to(self._device) for each in results]
        self._last.value = None
        for part in kept:
            self._place.value, self._many.value = part.data_ptr(), part.numel() * part.element_size()
            blocks = max(1, min(_DIGESTS, self._many.value // _DIGESTED))
            self._kernels.launch("digest", blocks, 256, self._digest)
        self._place.value, self._many.value, self._last.value = None, 0, page
        self._kernels.launch("digest", _DIGESTS, 256, self._digest)
        _synchronize(self._device)
