"""The reference's outputs, compared with others: by values, or by the elements that indices point at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kernelproof.types import ErrorStatistics
from kernelproof.verifier.contestant import loop
from kernelproof.verifier.referee.correctness import comparing, indices, tolerance
from kernelproof.verifier.referee.correctness.indices import IndexLeaf
from kernelproof.verifier.referee.correctness.tracing import IndexTrace
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, outputs_of

INDEX_DTYPES = ("int64", "int32")


@dataclass(frozen=True)
class ReferenceOutputs:
    """The reference's outputs for one set of arguments."""

    outputs: list[torch.Tensor]
    indices: dict[int, IndexLeaf] = field(default_factory=dict)
    """The outputs that are indices, by place."""

    @property
    def open(self) -> bool:
        """Whether another answer than these very integers may be right."""
        return any(not leaf.exact for leaf in self.indices.values())


def may_hold_indices(form: loop.OutputMeta) -> bool:
    """Whether a result of this form may hold indices."""
    return any(leaf.get("dtype") in INDEX_DTYPES for leaf in form.leaves)


def run_reference(
    loaded: LoadedProblem,
    model: torch.nn.Module,
    arguments: list[Any],
    seed: int,
    device: torch.device,
    *,
    indexed: bool,
) -> ReferenceOutputs:
    """Runs the reference; with `indexed`, it also finds out which outputs are indices of what."""
    if not indexed:
        return ReferenceOutputs(outputs_of(loaded.run(model, arguments, seed), device))
    with IndexTrace(arguments) as trace:
        value = loaded.run(model, arguments, seed)
    outputs = outputs_of(value, device)
    return ReferenceOutputs(outputs, trace.leaves(outputs))


def compare(
    known: ReferenceOutputs,
    sticks: Sequence[comparing.Yardstick],
    mine: Sequence[torch.Tensor],
    floors: Sequence[float],
    *,
    trial: str,
    numerics: str,
    moved: Sequence[torch.Tensor | None] | None = None,
) -> list[ErrorStatistics]:
    """Compares every output of `mine`. Floating values are compared with `sticks`, `floors` and `moved`: see
    `comparing.compare_with`."""
    found = []
    moved = moved or [None] * len(sticks)
    for output, (value, stick, floor, far) in enumerate(zip(mine, sticks, floors, moved, strict=True)):
        leaf = known.indices.get(output)
        if leaf is not None:
            native, searched = known.outputs[output], tolerance.norm_floor(leaf.source.dtype, numerics)
            found.append(indices.compare(leaf, native, value, trial=trial, output=output, floor=searched))
        else:
            judged = comparing.compare_with(stick, value, trial=trial, output=output, floor=floor, moved=far)
            found.append(judged)
    return found
