"""A candidate's parameters and buffers, and whether it is right with other weights.

`State`: parameters and buffers that the reference leaves alone must stay, those that it updates should
follow. Running statistics are the second kind. A candidate that does not update them computes the right
outputs with less work, and differs only once the model is used for something else: this gives a flag, no
failure. Weights that forward changes make every later answer differ: this is a failure.

`OtherWeights`: a candidate that leaves out what torch initialises to one value throughout, or has packed or
folded its weights once, is right in every trial, and wrong when a checkpoint is loaded after its first call.
So once all weights get other values in place, in the reference and in the candidate, and both are asked
again. It is a probe: who folds weights once is right as well, and cannot know of values that come later.
Where the reference cannot do with that, only those of one value throughout are changed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch.nn.modules.batchnorm import _NormBase

from kernelproof.types import Flag, VerifySettings
from kernelproof.verifier.referee.correctness.comparing import chunks, squared_norm
from kernelproof.verifier.referee.correctness.oracle import Oracle
from kernelproof.verifier.referee.inputs.problem import mapped
from kernelproof.verifier.referee.inputs.structure import sampled
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.sides import CandidateProcess
from kernelproof.verifier.status_rules import STATE_UNCHANGED, STATE_UPDATED, Cause
from kernelproof.verifier.workers.shared_memory import SharedSlot, SharedWeights, same_bits
from kernelproof.wording import counted

STEP_SHARE, ROUNDINGS = 2.0**-6, 8
"""A step may be off by this part of it, or by so many roundings of the values."""


class State:
    """The state of one candidate beside the reference's, after the trials."""

    def __init__(
        self,
        oracle: Oracle,
        weights: SharedWeights,
        pristine: SharedWeights,
        settings: VerifySettings,
        ledger: Ledger,
    ) -> None:
        """`weights` lies where the candidate can write, `pristine`, the initial state, does not."""
        self._oracle, self._weights, self._pristine = oracle, weights, pristine
        self._settings, self._ledger = settings, ledger
        state = oracle.model.state_dict()
        self._moving = {
            name for name, initial in pristine.views.items() if not same_bits(state[name], initial)
        }
        """What the reference itself changes."""

    def check_unchanged(self, candidate: CandidateProcess) -> None:
        """Whether what matched is as it was, where the reference left it alone. Raises Ended.

        It was as the reference's, or as ModelNew made it where that was kept.
        """
        kept = candidate.shared - self._moving
        if not kept:
            why = "no tensor matched by name" if not candidate.shared else "the reference changes its own"
            self._ledger.skipped(STATE_UNCHANGED, why)
            return
        missing = candidate.read_state(kept, Cause.RAISED_IN_CALL)
        for name in sorted(kept - missing):
            before = candidate.folded.get(name, self._pristine.views[name])
            if not same_bits(self._weights.views[name].to(before.device), before):
                seen = f"{name} was changed by forward"
                raise self._ledger.failed(STATE_UNCHANGED, seen, {"name": name})
        counts = {"compared": len(kept - missing), "no_longer_there": len(missing)}
        self._ledger.passed(STATE_UNCHANGED, "the same bytes after all trials", counts)

    def check_updated(self, candidate: CandidateProcess, slot: SharedSlot, device: torch.device) -> None:
        """Whether one call from the initial state takes both to the same one; sets a flag if not.

        Only where the reference changes something. Raises Ended when the call fails.
        """
        if not self._moving:
            return
        # A tensor that starts with the candidate's own values ends elsewhere, too.
        there = self._moving & candidate.shared - candidate.folded.keys()
        there -= candidate.read_state(there, Cause.RAISED_IN_CALL)
        state = self._stepped(candidate, there, slot, device)
        there -= candidate.read_state(there, Cause.RAISED_IN_CALL)
        mine, initial = self._weights.views, self._pristine.views
        wrong = {name for name in there if not _follows(mine[name], state[name], initial[name])}
        missing = self._moving - there
        figures = {"compared": len(there), "others": len(wrong), "not_there": len(missing)}
        if not wrong | missing:
            self._ledger.passed(STATE_UPDATED, f"{counted(len(there), 'tensor')} followed", figures)
            return
        first = min(wrong | missing)
        seen = f"{first} {'is not updated as the reference does' if first in wrong else 'is not there'}"
        self._ledger.flagged(STATE_UPDATED, Flag.STATE_NOT_UPDATED, seen, figures)

    def _stepped(
        self, candidate: CandidateProcess, there: set[str], slot: SharedSlot, device: torch.device
    ) -> dict[str, torch.Tensor]:
        """One call of both from the initial state; the state that the reference has then."""
        arguments = self._oracle.loaded.draw(self._ledger.seed("trial state"), device)
        seed = self._ledger.seed("forward state")
        state = self._oracle.model.state_dict()
        for name in self._moving:
            state[name].copy_(self._pristine.views[name])
        self._oracle.native(arguments, seed)
        candidate.write_state(there, self._weights, self._pristine.views, Cause.RAISED_IN_CALL)
        slot.fill(arguments)
        message = {"op": "call", "seed": seed, **slot.message()}
        candidate.ask(message, self._settings.call_seconds, Cause.RAISED_IN_CALL)
        return self._oracle.model.state_dict()


def _follows(mine: torch.Tensor, reference: torch.Tensor, initial: torch.Tensor) -> bool:
    """Whether a tensor made the reference's step: in norm to a part of that step, or to its own rounding.

    A step may be small beside the values: of inputs with variance one, a running variance makes hardly any.
    """
    if not reference.is_floating_point() or not bool(torch.isfinite(reference).all()):
        return same_bits(mine, reference)
    error = step = size = 0.0
    flat = mine.reshape(-1), reference.reshape(-1), initial.reshape(-1)
    for here in chunks(flat[0]):
        own, wide, before = (t[here].double() for t in flat)
        error += squared_norm(own - wide)
        step += squared_norm(wide - before)
        size += squared_norm(wide)
    rounding = ROUNDINGS * torch.finfo(reference.dtype).eps * math.sqrt(size)
    return math.sqrt(error) <= max(STEP_SHARE * math.sqrt(step), rounding)


LEAST = 0.5
"""Other values are at least so large: a scale of 1e-6 hides all that is scaled by it."""
SPREAD = 0.5
"""Other values lie up to this share above that least size, each somewhere else; around zero it is the
standard deviation."""
FEWEST = 8
"""A tensor has a pattern where its values come so often on average."""


def learned(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters, and statistics that a normalisation only uses, by their names.

    Other buffers are left out: a value that is computed once (a scale, a mask) may be written into a program.
    """
    found: dict[str, torch.Tensor] = dict(model.named_parameters(remove_duplicate=False))
    for prefix, module in model.named_modules():
        if isinstance(module, _NormBase) and not module.training:
            found |= {
                f"{prefix}.{name}".lstrip("."): each for name, each in module.named_buffers(recurse=False)
            }
    return {name: tensor for name, tensor in found.items() if tensor.is_floating_point() and tensor.numel()}


def learned_constants(model: torch.nn.Module, drawn: Collection[str] = ()) -> list[str]:
    """Names of those with one value throughout, or `drawn` in place of one, or with few values many times,
    such as an identity's."""
    return [name for name, tensor in learned(model).items() if name in drawn or _repeats(tensor)]


def scales(model: torch.nn.Module) -> set[str]:
    """Names of the scales of normalisations: trained ones have either sign."""
    kinds = (_NormBase, torch.nn.LayerNorm, torch.nn.GroupNorm, torch.nn.RMSNorm)
    named = model.named_modules()
    return {f"{prefix}.weight".lstrip(".") for prefix, module in named if isinstance(module, kinds)}


def _repeats(tensor: torch.Tensor) -> bool:
    """Whether it has one value throughout, or values that no generator draws so often."""
    if _one_value(tensor):
        return True
    some = sampled(tensor.detach()).flatten()
    few = len(some.unique()) * FEWEST <= len(some)  # type: ignore[no-untyped-call]
    return len(some) >= FEWEST and few


def _one_value(tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point() or not tensor.numel():
        return False
    first = tensor.detach().reshape(-1)[0]
    return bool(torch.isfinite(first)) and bool((tensor == first).all())


def other_values(
    tensor: torch.Tensor, generator: torch.Generator, *, either_sign: bool = False
) -> torch.Tensor:
    """Values of the same shape, and of the same signs where there are any and not `either_sign` is right, in
    host memory. `generator`: the processor's."""
    before = tensor.detach().cpu()
    if either_sign:
        before = before * (1 - 2 * torch.randint(2, tensor.shape, generator=generator))
    if not before.any():
        return torch.randn(tensor.shape, generator=generator) * SPREAD
    size = before.abs().clamp(min=LEAST) * (1 + SPREAD * torch.rand(tensor.shape, generator=generator))
    return torch.copysign(size, before)


def scaled_values(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each value times a number of its own, 1 in geometric mean, so that many layers neither grow nor
    vanish."""
    factors = torch.rand(tensor.shape, generator=generator, device=tensor.device)
    return tensor.detach() * factors.sub_(0.5).exp2_().to(tensor.dtype)


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

    def __init__(
        self,
        model: torch.nn.Module,
        drawn: Collection[str],
        weights: SharedWeights,
        pristine: SharedWeights,
    ) -> None:
        """`drawn`: as `learned_constants` takes it. `weights` lies where the candidate can write, `pristine`,
        the initial state, does not."""
        self._model, self._weights, self._pristine = model, weights, pristine
        names, self._scales = learned_constants(model, drawn), scales(model)
        self._constants = [name for name in names if name in pristine.views]
        # Without a gradient it may be a table that a program computes itself.
        others = [name for name, each in learned(model).items() if each.requires_grad]
        self.names = list(dict.fromkeys([*self._constants, *(n for n in others if n in pristine.views)]))

    def chosen(self, candidate: CandidateProcess) -> list[list[str]]:
        """The weights to change beside this candidate, and what to change instead where the reference cannot
        do with that; none where it may hold them in another form.

        A candidate without a tensor under a name of its own has none but the reference's: it leaves out the
        missing ones.
        """
        if candidate.folded:
            return []
        there = candidate.shared | candidate.renamed.keys()
        found = [name for name in self.names if name in there or not candidate.own_names]
        few = [name for name in found if name in self._constants]
        return [names for names in (found, few if len(few) < len(found) else []) if names]

    def change(self, candidate: CandidateProcess, names: Collection[str], generator: torch.Generator) -> None:
        """Gives these other values, in both, tied ones the same. Raises Ended where the candidate's process
        fails."""
        state = self._model.state_dict()
        done: set[int] = set()
        for name in names:
            if (tied := state[name].data_ptr()) not in done:
                state[name].copy_(self._other(name, state[name], generator))
            done.add(tied)
        self._write(candidate, names, state)

    def _other(self, name: str, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if name in self._constants:
            return other_values(tensor, generator, either_sign=name in self._scales)
        seed = int(torch.randint(1 << 62, (), generator=generator))
        there = torch.Generator(tensor.device).manual_seed(seed)
        return scaled_values(tensor, there)

    def restore(self, candidate: CandidateProcess, names: Collection[str]) -> None:
        """Gives them the initial values again, the reference's first. Raises Ended as `change` does."""
        state = self._model.state_dict()
        for name in names:
            state[name].copy_(self._pristine.views[name])
        self._write(candidate, names, self._pristine.views)

    def _write(
        self, candidate: CandidateProcess, names: Collection[str], values: Mapping[str, torch.Tensor]
    ) -> None:
        there = (candidate.shared | candidate.renamed.keys()) & set(names)
        candidate.write_state(there, self._weights, values, Cause.RAISED_IN_CALL)
