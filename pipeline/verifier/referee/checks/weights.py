"""Other weights: what a fresh model has as one value throughout, and a trained one has not.

A fresh layer norm multiplies by ones and adds zeros. A candidate that leaves out both is right in every
trial, and wrong in every model that somebody has trained. So once such weights get other values, in the
reference and in the candidate, and both are asked again. It is a probe: a candidate that folded the ones into
another weight once is right as well, and cannot know of values that come later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch.nn.modules.batchnorm import _NormBase

from kernelproof.types import Status
from kernelproof.verifier.referee.inputs.problem import mapped
from kernelproof.verifier.referee.sides.candidate_process import CandidateProcess
from kernelproof.verifier.workers.shared_memory import SharedWeights

LEAST = 0.5
"""Other values are at least so large: a scale of 1e-6 hides all that is scaled by it."""
SPREAD = 0.5
"""Other values lie up to this share above that least size, each somewhere else; around zero it is the
standard deviation."""


def learned_constants(model: torch.nn.Module) -> list[str]:
    """Names of parameters, and of statistics that a normalisation only uses, with one value throughout.

    Other buffers are left out: a value that is computed once (a scale, a mask) may be written into a program.
    """
    found: dict[str, torch.Tensor] = dict(model.named_parameters(remove_duplicate=False))
    for prefix, module in model.named_modules():
        if isinstance(module, _NormBase) and not module.training:
            found |= {
                f"{prefix}.{name}".lstrip("."): each for name, each in module.named_buffers(recurse=False)
            }
    return [name for name, tensor in found.items() if _one_value(tensor)]


def _one_value(tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point() or not tensor.numel():
        return False
    first = tensor.detach().reshape(-1)[0]
    return bool(torch.isfinite(first)) and bool((tensor == first).all())


def other_values(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Values of the same sign and the same shape, in host memory. `generator`: the processor's."""
    value = float(tensor.detach().reshape(-1)[0])
    if value == 0.0:
        return torch.randn(tensor.shape, generator=generator) * SPREAD
    size = max(abs(value), LEAST) * (1 + SPREAD * torch.rand(tensor.shape, generator=generator))
    return size if value > 0 else -size


def other_inputs(arguments: list[Any], generator: torch.Generator) -> tuple[list[Any], int]:
    """The arguments, with other values in inputs of one value throughout, and how many these are.

    No variant changes such inputs: ones and zeros may be a mask. But they may be a scale and a shift as well.
    """
    changed = 0

    def change(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        if tensor.numel() < 2 or not _one_value(tensor):
            return tensor
        changed += 1
        return torch.empty_like(tensor).copy_(other_values(tensor, generator))

    return [mapped(argument, change) for argument in arguments], changed


class OtherWeights:
    """The weights of reference and candidate, as far as they may be changed."""

    def __init__(self, model: torch.nn.Module, weights: SharedWeights, pristine: SharedWeights) -> None:
        """`weights` lies where the candidate can write, `pristine`, the initial state, does not."""
        self._model, self._weights, self._pristine = model, weights, pristine
        self.names: Sequence[str] = [name for name in learned_constants(model) if name in pristine.views]

    def chosen(self, candidate: CandidateProcess) -> list[str]:
        """The weights to change beside this candidate; none where it may hold them in another form.

        A candidate without a tensor under a name of its own has none but the reference's: it leaves out the
        missing ones.
        """
        if candidate.folded:
            return []
        there = candidate.shared
        return [name for name in self.names if name in there or not candidate.own_names]

    def change(self, candidate: CandidateProcess, names: Collection[str], generator: torch.Generator) -> None:
        """Gives these other values, in both. Raises Ended where the candidate's process fails."""
        state = self._model.state_dict()
        for name in names:
            state[name].copy_(other_values(state[name], generator))
        self._write(candidate, names, state)

    def restore(self, candidate: CandidateProcess, names: Collection[str]) -> None:
        """Gives them the initial values again, the reference's first. Raises Ended as `change` does."""
        state = self._model.state_dict()
        for name in names:
            state[name].copy_(self._pristine.views[name])
        self._write(candidate, names, self._pristine.views)

    def _write(
        self, candidate: CandidateProcess, names: Collection[str], values: Mapping[str, torch.Tensor]
    ) -> None:
        shared = candidate.shared & set(names)
        candidate.write_state(shared, self._weights, values, Status.RUNTIME_ERROR)
