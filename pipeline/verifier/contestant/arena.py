"""Arenas: blocks of memory that referee and contestant both see, and tensors laid out in them.

On the CPU an arena is a `memfd` that both map; its descriptor travels over the socket. On a GPU it is
one `cudaMalloc` of the referee's, in whole segments, that the contestant opens through CUDA IPC; the
64-byte handle travels in a message. A tensor in an arena is a spec: arena, byte offset, dtype, shape, stride
(in elements).

`GuardedModel` puts margins around what a candidate allocates itself, as the referee does with inputs. It sees
what goes through torch's dispatcher in the candidate's own thread: `torch.empty` and `at::empty_like`, not
`cudaMalloc`. An allocator in torch's place would see less: torch asks it for segments, and puts tensors side
by side there. Each such tensor has a storage of its own, aligned as any, that ends where the tensor ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelproof.verifier.contestant.encoding import dtype_name, dtype_of
from kernelproof.verifier.contestant.wire import WireError, sealed_file

ALIGNMENT = 512
"""Bytes: every tensor starts on such a boundary, as torch's own CUDA allocations do."""

SEGMENT = 2 << 20
"""Bytes: `cudaMalloc` gives multiples of this a block of their own. Smaller requests share one, and a CUDA
IPC handle opens the whole block: a process with the handle would see, and could change, the memory beside its
arena."""


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


def overlaps(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether two indices may name one element: of expanded or unfolded views."""
    reach = 1  # elements that the dimensions so far, smallest stride first, touch
    for step, size in sorted(zip(stride, shape, strict=True)):
        if size > 1:
            if step < reach:
                return True
            reach += (size - 1) * step
    return False


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
    """A CPU arena and the descriptor to send along. The caller closes the descriptor after sending."""
    descriptor = sealed_file(name, max(nbytes, ALIGNMENT))
    return attach_shared(name, descriptor), descriptor


def attach_shared(name: str, descriptor: int) -> Arena:
    """The CPU arena behind a descriptor."""
    mapping = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
    return Arena(name, torch.frombuffer(mapping, dtype=torch.uint8), mapping)


class _CudaRuntime:
    """The calls of the CUDA runtime that torch does not offer, from the library torch has loaded."""

    class Handle(ctypes.Structure):
        _fields_ = [("reserved", ctypes.c_char * 64)]

    def __init__(self) -> None:
        major = str(torch.version.cuda).split(".")[0]
        self._library = ctypes.CDLL(f"libcudart.so.{major}")
        self._library.cudaGetErrorString.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a runtime function; raises torch.OutOfMemoryError for lack of memory, RuntimeError else."""
        code = getattr(self._library, name)(*arguments)
        if code:
            self._library.cudaGetLastError()  # or torch would find it at its next launch
        if code == 2:
            raise torch.OutOfMemoryError(f"{name}: out of device memory")
        if code != 0:
            raise RuntimeError(f"{name}: {self._library.cudaGetErrorString(code).decode()}")


_runtime = functools.cache(_CudaRuntime)


def _as_array(pointer: int, nbytes: int) -> dict[str, Any]:
    """Device memory as bytes, by the CUDA array interface."""
    return {"shape": (nbytes,), "typestr": "|u1", "data": (pointer, False), "strides": None, "version": 3}


class _DeviceBlock:
    """Device memory as an object that torch can wrap; frees or closes it when the arena goes."""

    def __init__(self, runtime: _CudaRuntime, pointer: int, nbytes: int, release: str) -> None:
        self._runtime, self._pointer, self._release = runtime, pointer, release
        self.__cuda_array_interface__ = _as_array(pointer, nbytes)

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
        runtime, pointer, handle = _runtime(), ctypes.c_void_p(), _CudaRuntime.Handle()
        torch.empty(1, device=device)  # makes the context current for the runtime calls below
        runtime.call("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        runtime.call("cudaIpcGetMemHandle", ctypes.byref(handle), pointer)
        block = _DeviceBlock(runtime, int(pointer.value or 0), nbytes, "cudaFree")
        raw = ctypes.string_at(ctypes.byref(handle), 64)
        return Arena(name, torch.as_tensor(block, device=device), block), raw.hex()


def attach_device(name: str, handle_hex: str, nbytes: int, device: torch.device) -> Arena:
    """The GPU arena that another process made, opened through its IPC handle."""
    with torch.cuda.device(device):
        runtime, pointer = _runtime(), ctypes.c_void_p()
        torch.empty(1, device=device)
        handle = _CudaRuntime.Handle.from_buffer_copy(bytes.fromhex(handle_hex))
        runtime.call("cudaIpcOpenMemHandle", ctypes.byref(pointer), handle, ctypes.c_uint(1))
        block = _DeviceBlock(runtime, int(pointer.value or 0), nbytes, "cudaIpcCloseMemHandle")
        return Arena(name, torch.as_tensor(block, device=device), block)


def reset_persisting_lines() -> None:
    """Takes back the lines that were set aside in the device's L2 to survive a flush, those of other
    processes too. Devices without that feature refuse; there is nothing to take back then."""
    with contextlib.suppress(RuntimeError):
        _runtime().call("cudaCtxResetPersistingL2Cache")


def release(arena: Arena) -> None:
    """Gives the arena's memory back now; no view of it may be used afterwards."""
    owner = arena._owner
    arena.data = torch.empty(0, dtype=torch.uint8)
    if isinstance(owner, _DeviceBlock):
        owner.close()


MARGIN = 64 << 10
"""Bytes around each input: a row, or a block of threads, that lies beside it is mostly shorter."""
FILLS = 0x5A, 0xDA
"""What the margins of floats hold in turn: a large number, whatever the float, and a negative one. NaN would
not do: a maximum passes over it. Those of whole numbers hold 0 and 1, which are indices within range."""
VECTOR = 16
"""Bytes: an aligned load of so many that begins within a tensor is no finding, whatever it does with them."""
_EMPTY = ("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided")
_FRESH = (
    *("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full"),
    *("clone", "_to_copy", *_EMPTY),
)
"""Operators of torch whose results are tensors of the candidate's own, of which `_EMPTY` hold no values."""


def fill_margins(before: torch.Tensor, after: torch.Tensor, dtype: torch.dtype, number: int) -> torch.Tensor:
    """Fills the bytes around a tensor of that dtype, and returns a copy of them. What is left of its last
    vector gets the same each time."""
    rest, floats = after.numel() % VECTOR, dtype.is_floating_point or dtype.is_complex
    for place, which in ((before, number), (after[:rest], 0), (after[rest:], number)):
        _ = place.fill_(FILLS[which]) if floats else place.view(dtype).fill_(which)
    return torch.cat((before, after))


class _Part:
    """Bytes of device memory as an object that torch can wrap in a storage that ends with them."""

    def __init__(self, data: torch.Tensor) -> None:
        self._data = data  # lives as long as the storage
        self.__cuda_array_interface__ = _as_array(data.data_ptr(), data.numel())


class _GuardedTensor:
    """A tensor between margins."""

    def __init__(self, like: torch.Tensor) -> None:
        """With `like`'s form, and no values."""
        nbytes = like.numel() * like.itemsize
        whole = torch.empty(bytes_of(like) + 2 * MARGIN, dtype=torch.uint8, device=like.device)
        inner = whole[MARGIN : MARGIN + nbytes]
        flat = torch.as_tensor(inner.numpy() if like.is_cpu else _Part(inner), device=like.device)
        empty = torch.empty(0, dtype=like.dtype, device=like.device)
        self.tensor = empty.set_(flat.untyped_storage(), 0, like.shape, like.stride())
        self._margins = whole[:MARGIN], whole[MARGIN + nbytes :]

    def fill(self, number: int) -> None:
        self._held = fill_margins(*self._margins, self.tensor.dtype, number)

    def changed(self) -> int:
        """Bytes of the margins that are others than when they were filled."""
        return int((torch.cat(self._margins) != self._held).sum())


class GuardedModel(TorchDispatchMode):
    """Calls a model with margins around its weights and around the tensors that it makes meanwhile."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Of torch's own: True would have its compiler imported at the first operator, for ten seconds."""
        return False

    def __init__(self, model: torch.nn.Module, device: torch.device, most: int) -> None:
        """`most`: bytes that guarded tensors may take; further ones are made as usual.

        The weights' copies stay for good: what a candidate records of its addresses (a CUDA graph), it may
        use later.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self._model, self._device, self._left, self._number = model, device, most, 0
        self._made: list[_GuardedTensor] = []
        found = {id(each): each for each in (*model.parameters(), *model.buffers())}.values()
        self._weights = [(each, made) for each in found if (made := self._guarded(each)) is not None]
        self._most = self._left

    def call(self, number: int, *arguments: Any) -> Any:
        """The model's result, with that fill in the margins. Its weights are afterwards as they were."""
        self._left, self._number, self._made = self._most, number, [made for _, made in self._weights]
        before = [weight.data for weight, _ in self._weights]
        try:
            for weight, made in self._weights:
                made.tensor.copy_(weight.data)
                made.fill(number)
                weight.data = made.tensor
            with self:
                return self._model(*arguments)
        finally:
            for (weight, _), data in zip(self._weights, before, strict=True):
                weight.data = data

    def changed(self) -> int:
        """Bytes beside weights and own tensors that the last call changed; asked once, when it is done."""
        made, self._made = self._made, []
        return sum(each.changed() for each in made)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        if name not in _FRESH or func._schema.is_mutable or (made := self._guarded(result)) is None:
            return result
        made.fill(self._number)
        self._made.append(made)
        # What `empty` gives has no values. A copy on this stream could come after the candidate's on another.
        return made.tensor if name in _EMPTY else made.tensor.copy_(result)

    def _guarded(self, tensor: Any) -> _GuardedTensor | None:
        """One like it; None for what is no plain tensor with all of a storage for itself."""
        if (
            type(tensor) not in (torch.Tensor, torch.nn.Parameter)
            or (tensor.device.type, tensor.layout) != (self._device.type, torch.strided)
            or (tensor.is_conj() or tensor.is_neg() or not tensor.numel())
            or span(list(tensor.shape), list(tensor.stride())) != tensor.numel()
            or tensor.untyped_storage().nbytes() != tensor.numel() * tensor.itemsize
            or (tensor.is_cuda and torch.cuda.is_current_stream_capturing())
        ):
            return None
        needed = bytes_of(tensor) + 2 * MARGIN
        if needed > self._left:
            return None
        self._left -= needed
        return _GuardedTensor(tensor)
