"""Arenas: blocks of memory that referee and contestant both see, and tensors laid out in them.

On the CPU an arena is a `memfd` that both map; its descriptor travels over the socket. On a GPU it is
one `cudaMalloc` of the referee's, in whole segments, that the contestant opens through CUDA IPC; the
64-byte handle travels in a message. A tensor in an arena is a spec: arena, byte offset, dtype, shape, stride
(in elements).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
from typing import Any

import torch

from kernelproof.verifier.contestant.encoding import dtype_name, dtype_of
from kernelproof.verifier.contestant.wire import WireError

ALIGNMENT = 512
"""Bytes: every tensor starts on such a boundary, as torch's own CUDA allocations do."""

SEGMENT = 2 << 20
"""Bytes: `cudaMalloc` gives multiples of this a block of their own. Smaller requests share one, and a CUDA
IPC handle opens the whole block: a process with the handle would see, and could change, the memory beside its
arena."""

_PERSISTING_L2_LIMIT = 6
"""cudaLimitPersistingL2CacheSize."""


class Arena:
    """A block of shared bytes and the tensors in it."""

    def __init__(self, name: str, data: torch.Tensor, owner: object) -> None:
        self.name = name
        self.data = data
        """The whole block as uint8."""
        self._owner = owner

    @property
    def nbytes(self) -> int:
        return self.data.numel()

    def view(self, spec: dict[str, Any]) -> torch.Tensor:
        """The tensor a spec describes. Raises WireError when it does not lie inside the arena."""
        try:
            dtype, shape, stride = dtype_of(spec["dtype"]), list(spec["shape"]), list(spec["stride"])
            offset = int(spec["offset"])
            count = span(shape, stride)
            if offset < 0 or min([0, *shape, *stride]) < 0 or offset + count * dtype.itemsize > self.nbytes:
                raise WireError("a tensor lies outside its arena")
            flat = self.data[offset : offset + count * dtype.itemsize].view(dtype)
            return flat.as_strided(shape, stride)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise WireError(f"a tensor spec is malformed: {error}") from None


def span(shape: list[int], stride: list[int]) -> int:
    """Elements between the first and one past the last that a strided tensor touches."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def spec_of(tensor: torch.Tensor, arena: str, offset: int) -> dict[str, Any]:
    """The spec of a tensor like `tensor` (dtype, shape, stride) at an offset in an arena."""
    return {
        "arena": arena,
        "offset": offset,
        "dtype": dtype_name(tensor.dtype),
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
    }


def bytes_of(tensor: torch.Tensor) -> int:
    """Bytes a tensor's spec occupies in an arena, rounded up to the alignment."""
    count = span(list(tensor.shape), list(tensor.stride())) * tensor.element_size()
    return -(-count // ALIGNMENT) * ALIGNMENT


def create_shared(name: str, nbytes: int) -> tuple[Arena, int]:
    """A CPU arena and the descriptor to send along. The caller closes the descriptor after sending.

    Sealed, so that nobody can make it shorter: a process that reads beyond the end of a file is killed.
    """
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, max(nbytes, ALIGNMENT))
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return attach_shared(name, descriptor), descriptor


def attach_shared(name: str, descriptor: int) -> Arena:
    """The CPU arena behind a descriptor."""
    mapping = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
    return Arena(name, torch.frombuffer(mapping, dtype=torch.uint8), mapping)


class _CudaRuntime:
    """The three calls of the CUDA runtime that torch does not offer, from the library torch has loaded."""

    class Handle(ctypes.Structure):
        _fields_ = [("reserved", ctypes.c_char * 64)]

    def __init__(self) -> None:
        major = str(torch.version.cuda).split(".")[0]
        self._library = ctypes.CDLL(f"libcudart.so.{major}")
        self._library.cudaGetErrorString.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a runtime function; raises torch.OutOfMemoryError for lack of memory, RuntimeError else."""
        code = getattr(self._library, name)(*arguments)
        if code == 2:
            raise torch.OutOfMemoryError(f"{name}: out of device memory")
        if code != 0:
            raise RuntimeError(f"{name}: {self._library.cudaGetErrorString(code).decode()}")


class _DeviceBlock:
    """Device memory as an object that torch can wrap; frees or closes it when the arena goes."""

    def __init__(self, runtime: _CudaRuntime, pointer: int, nbytes: int, release: str) -> None:
        self._runtime, self._pointer, self._release = runtime, pointer, release
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (pointer, False),
            "strides": None,
            "version": 3,
        }

    def close(self) -> None:
        """Frees (or closes) the memory; no tensor of the arena may be used afterwards."""
        if self._pointer:
            pointer, self._pointer = self._pointer, 0
            self._runtime.call(self._release, ctypes.c_void_p(pointer))


def device_bytes(nbytes: int) -> int:
    """What is asked of `cudaMalloc` for a GPU arena of so many bytes: whole segments, one at least."""
    return max(1, -(-nbytes // SEGMENT)) * SEGMENT


def create_device(name: str, nbytes: int, device: torch.device) -> tuple[Arena, str]:
    """A GPU arena in this process and the IPC handle, as hex, to send along. It shares no memory that the
    handle opens with anything else."""
    torch.cuda.init()  # type: ignore[no-untyped-call]
    nbytes = device_bytes(nbytes)
    with torch.cuda.device(device):
        runtime, pointer, handle = _CudaRuntime(), ctypes.c_void_p(), _CudaRuntime.Handle()
        torch.empty(1, device=device)  # makes the context current for the runtime calls below
        runtime.call("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        runtime.call("cudaIpcGetMemHandle", ctypes.byref(handle), pointer)
        block = _DeviceBlock(runtime, int(pointer.value or 0), nbytes, "cudaFree")
        raw = ctypes.string_at(ctypes.byref(handle), 64)
        return Arena(name, torch.as_tensor(block, device=device), block), raw.hex()


def attach_device(name: str, handle_hex: str, nbytes: int, device: torch.device) -> Arena:
    """The GPU arena that another process made, opened through its IPC handle."""
    with torch.cuda.device(device):
        runtime, pointer = _CudaRuntime(), ctypes.c_void_p()
        torch.empty(1, device=device)
        handle = _CudaRuntime.Handle.from_buffer_copy(bytes.fromhex(handle_hex))
        runtime.call("cudaIpcOpenMemHandle", ctypes.byref(pointer), handle, ctypes.c_uint(1))
        block = _DeviceBlock(runtime, int(pointer.value or 0), nbytes, "cudaIpcCloseMemHandle")
        return Arena(name, torch.as_tensor(block, device=device), block)


def forget_persisting_lines() -> None:
    """Takes back what L2 lines were set aside to survive a flush, and the right to set any aside.

    Devices without that feature refuse; there is nothing to forget then.
    """
    runtime = _CudaRuntime()
    with contextlib.suppress(RuntimeError):
        runtime.call("cudaCtxResetPersistingL2Cache")
        runtime.call("cudaDeviceSetLimit", ctypes.c_int(_PERSISTING_L2_LIMIT), ctypes.c_size_t(0))


def release(arena: Arena) -> None:
    """Gives the arena's memory back now; no view of it may be used afterwards."""
    owner = arena._owner
    arena.data = torch.empty(0, dtype=torch.uint8)
    if isinstance(owner, _DeviceBlock):
        owner.close()
