"""Seeds of torch's generators, and whether a piece of work drew from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
