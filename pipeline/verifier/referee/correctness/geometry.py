"""How tensors lie in memory: which storage, and which of its elements."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Geometry:
    """How a strided tensor lies in its storage, in elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Geometry:
        """The geometry of a strided tensor."""
        return cls(tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset()))

    @property
    def elements(self) -> int:
        """Elements of the storage that the tensor names, each once, where it is not `folded`."""
        count = 1
        for size, step in zip(self.shape, self.stride, strict=True):
            count *= size if step or not size else 1
        return count

    @property
    def folded(self) -> bool:
        """Whether, expanded dimensions apart, two indices may name one element (overlapping windows)."""
        reach = 1  # elements that the dimensions so far, smallest stride first, touch
        for step, size in sorted(zip(self.stride, self.shape, strict=True)):
            if size > 1 and step:
                if step < reach:
                    return True
                reach += (size - 1) * step
        return False

    @property
    def once(self) -> bool:
        """Whether every element of the storage is named at most once: the tensor can be written to."""
        expanded = any(size > 1 and not step for size, step in zip(self.shape, self.stride, strict=True))
        return not expanded and not self.folded

    @property
    def trimmed(self) -> Geometry:
        """The same elements without the dimensions that add none: of size one, and expanded."""
        kept = [(size, step) for size, step in zip(self.shape, self.stride, strict=True) if size > 1 and step]
        return Geometry(tuple(size for size, _ in kept), tuple(step for _, step in kept), self.offset)

    def within(self, flat: torch.Tensor) -> torch.Tensor:
        """The view with this geometry of a flat, contiguous tensor."""
        return flat.as_strided(self.shape, self.stride, self.offset)

    def tick(self, seen: torch.Tensor) -> None:
        """Sets the elements that a `trimmed` geometry names in a flat boolean tensor."""
        if not self.folded:
            self.within(seen).fill_(True)
            return
        axis = min(range(len(self.shape)), key=lambda a: self.shape[a])  # windows shifted one by one
        shape, stride = (kept[:axis] + kept[axis + 1 :] for kept in (self.shape, self.stride))
        for place in range(self.shape[axis]):
            Geometry(shape, stride, self.offset + place * self.stride[axis]).tick(seen)


def storage_address(tensor: torch.Tensor) -> int | None:
    """Where the tensor's storage begins, equal for all views of it; None where there is no memory."""
    if tensor.layout != torch.strided or tensor.is_meta:
        return None
    return tensor.untyped_storage().data_ptr() or None
