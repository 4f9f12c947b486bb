"""Random numbers: torch's seeds, and large weights drawn on the GPU, as a processor takes seconds for what a
GPU draws in milliseconds.

>>> with large_draws(device):
...     model = Model(*arguments)  # nn.Linear(32768, 32768) draws a thousand million numbers

Tensors stay where they are: the numbers are copied to the host's memory. Their seed comes from torch's
generator for the processor, so a model that draws the same layers in the same order gets the same weights,
in whichever process it is constructed on that GPU. `draws_noticed` says whether a piece of work drew at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


def seed_torch(seed: int) -> None:
    """Seeds torch's generators of the processor and of the GPUs in use.

    `torch.manual_seed` seeds those of all kinds of devices: what a kind that is not in use is to do later it
    notes down, with the stack of its caller, and never forgets. That takes most of a millisecond, and memory.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


@contextmanager
def draws_noticed() -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether torch's generators were drawn from since the block began."""
    host, offsets = torch.default_generator.get_state(), _offsets()

    def drawn() -> bool:
        return offsets != _offsets() or not torch.equal(host, torch.default_generator.get_state())

    yield drawn


def _offsets() -> list[int]:
    """How many numbers of its seed each GPU's generator has given."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return []
    return [generator.get_offset() for generator in torch.cuda.default_generators]


LARGE = 1 << 22
"""Elements from which on a tensor is drawn so: a processor takes some 20 ms for as many."""
PIECE = 1 << 24
"""Elements drawn at a time: 64 MiB of the GPU's memory."""
_METHODS = ("uniform_", "normal_")
"""What torch's layers draw their weights with."""
_FACTORIES = {"rand": "uniform_", "randn": "normal_"}
"""Functions for weights that no layer holds (`nn.Parameter(torch.randn(...))`), each with the method that
draws the same numbers."""


@contextmanager
def large_draws(
    device: torch.device, *, large: int = LARGE, piece: int = PIECE, always: bool = False
) -> Iterator[None]:
    """Large float32 tensors of the host are filled from the GPU `device` meanwhile; from another kind of
    device only `always`."""
    if device.type != "cuda" and not always:
        yield
        return
    # Functions are replaced, and no mode of torch's is used: torch.compile would see that in a constructor.
    ours = {name: _device_method(getattr(torch.Tensor, name), device, large, piece) for name in _METHODS}
    torchs = {name: getattr(torch, name) for name in _FACTORIES}
    makers = {name: _device_factory(torchs[name], method, large) for name, method in _FACTORIES.items()}
    for name, method in ours.items():
        setattr(torch.Tensor, name, method)
    for name, maker in makers.items():
        setattr(torch, name, maker)
    try:
        yield
    finally:
        for name, method in ours.items():
            if torch.Tensor.__dict__.get(name) is method:  # torch's own are those of the class above
                delattr(torch.Tensor, name)
        for name, maker in makers.items():
            if getattr(torch, name) is maker:
                setattr(torch, name, torchs[name])


def _device_method(
    method: Callable[..., Any], device: torch.device, large: int, piece: int
) -> Callable[..., Any]:
    def draw_on_device(tensor: torch.Tensor, *arguments: Any, **more: Any) -> Any:
        if not _is_large_draw(tensor, large, more):
            return method(tensor, *arguments, **more)
        seed = torch.empty((), dtype=torch.int64, device="cpu").random_()
        source = torch.Generator(device).manual_seed(int(seed))
        with torch.no_grad():
            for place in torch.split(tensor.view(-1), piece):
                numbers = torch.empty(place.numel(), device=device)
                place.copy_(method(numbers, *arguments, **more | {"generator": source}))
        return tensor

    return draw_on_device


def _device_factory(factory: Callable[..., Any], method: str, large: int) -> Callable[..., Any]:
    """`factory`, whose large tensors are made empty and then filled by the replaced `method`."""

    def fill_large(*size: Any, **more: Any) -> Any:
        if not more.keys() <= {"dtype", "device", "requires_grad"} or not _many(size, large):
            return factory(*size, **more)
        wanted = bool(more.pop("requires_grad", False))
        tensor = torch.empty(*size, **more)
        return getattr(tensor, method)().requires_grad_(wanted)

    return fill_large


def _many(size: tuple[Any, ...], large: int) -> bool:
    """Whether these sizes of a factory are so many elements. False for mistakes, which torch shall tell."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    return all(type(length) is int and length >= 0 for length in size) and math.prod(size) >= large


def _is_large_draw(tensor: torch.Tensor, large: int, more: dict[str, Any]) -> bool:
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.numel() >= large
        and tensor.device.type == "cpu"
        and tensor.dtype == torch.float32
        and tensor.is_contiguous()
        and more.get("generator") is None
        and not (tensor.requires_grad and torch.is_grad_enabled())  # torch refuses that
    )
