"""How coarse operands show in a problem, and the bound that tells them from float32's.

TF32 is off by 4e-4 in a product, and the float32 floor of 5e-5 refuses it. Behind a softmax whose rows have
one large score, or a scale of 0.01, the same product is off by 4e-5 in the result, and an embedding whose
table holds 16-bit integers by 2.5e-5: the floor accepts both. So what coarse operands are off by is found out
at the trial's own inputs: the reference runs again, with some operands rounded to

- the eleven significant bits of TF32 and float16 (bfloat16 keeps eight of them, and is never nearer), or
- 16-bit integers, with a scale for each slice of the first dimension.

`places` are where a program gains by that: each product, gather and softmax by itself (its exponentials, to
eleven bits), and all inputs and weights as they are stored. Every run is compared with the same run without
rounding, so that no truth is needed. There are DRAWS of inputs: the trial's, and others that are near enough
to be like it, but round anew; a result of one number may be near by luck in one of them.

With e the smallest of these errors, in rms over the draws, the bound is N = COARSE_SHARE * e, if that is less
than the dtype's floor. It is never below `honest`, which is the most of

- PLAIN_MULTIPLE times the error of plain arithmetic,
- ROUNDINGS roundings of the output, and of the inputs,
- what three TF32 products, six bfloat16 ones and fast exponentials cost: see TRUNCATED and _SPECIAL.

An error e of which a share is below that is no mark of coarse operands, and is left out. If none is left,
precision is not separable there, and the floor stays.

A reference that only moves data (a gather, a copy, a concatenation: every operator that it runs is seen) has
no arithmetic to round in, so ROUNDINGS roundings of float32 are its bound, for float16 and bfloat16 too. An
error that happened to be 0 says nothing: a narrow output that is computed keeps its floor.

An output that only the floor accepts is wrong if it is not within N; where precision is not separable, it is
accepted, and flagged if a share of the smallest error would refuse it. So is one that coarse operands in some
place explain where they are no mark, and twice plain arithmetic does not. So is one whose bound is not
found out, in MOST_SECONDS or since the reference cannot be run so, or adds up complex numbers. The figures
of `values: NAME` tell all that.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.contestant.loop import outputs_of
from kernelproof.verifier.referee.correctness import tolerance
from kernelproof.verifier.referee.correctness.comparing import Yardstick, measured
from kernelproof.verifier.referee.correctness.indices import IndexLeaf, IndexTrace, bound
from kernelproof.verifier.referee.correctness.plain_arithmetic import (
    ELEVEN_BITS,
    Arithmetic,
    Inputs,
    Steps,
    eleven_bits,
    is_product,
)
from kernelproof.verifier.referee.correctness.tolerance import COARSE_SHARE, ROUNDINGS
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError, mapped, upcast

Rounding = Callable[[torch.Tensor], torch.Tensor]

JUDGED = {"drawn": "drawn", "timed": "drawn", "signed": "signed"}
"""Inputs on which the rule is asked, and their kind: others are extreme, and a problem's precision is not
theirs."""
DRAWS = 4
MOST_SECONDS = 5.0
"""A bound that takes longer decides nothing: a reference that is slow would be run dozens of times."""
PLACES = 8
"""Operators that are rounded apart; more are rounded in so many groups of neighbours."""
NEAR = 2.0**-8
"""Other draws: every element times a number this near to 1, so that it rounds anew in all three formats."""
UNIT = 2.0**-24
BFLOAT16_STEPS = 16
"""Coarse operands in one place explain an error of so many times theirs: bfloat16 makes eight times that of
eleven bits."""
SEARCHED = 52
"""Roundings of each input that a search has to bear: a sixteenth of the floor."""
LEAST = ROUNDINGS * UNIT
"""No bound is below that."""
TRUNCATED = 2.0**-26
"""A tensor core's sum of K terms is off by so much times K, relative to it. With three TF32 products a term,
eight terms a step, every step truncated to float32, it is 9e-9 K; with nine bfloat16 products 1.4e-8 K."""
FAST_TANH = 2.0**-17
"""With `--use_fast_math` tanhf is off by 4.3e-6 in norm for numbers of [0, 1), on an H200: half of this."""
_GATHERS = {
    *("embedding", "_embedding_bag", "_embedding_bag_forward_only"),
    *("index", "index_select", "gather", "take"),
}
_MOVES = _GATHERS - {"_embedding_bag", "_embedding_bag_forward_only"} | {
    *("clone", "copy_", "copy", "_to_copy", "contiguous", "cat", "stack", "flip", "roll", "repeat"),
    *("repeat_interleave", "constant_pad_nd", "where", "masked_fill", "masked_fill_", "masked_select"),
    *("index_put", "index_put_", "index_copy", "scatter", "slice_scatter", "tril", "triu", "im2col"),
    *("empty", "empty_like", "new_empty", "empty_strided", "zeros", "zeros_like", "new_zeros", "full"),
    *("full_like", "new_full", "fill_", "zero_", "scalar_tensor", "lift_fresh"),
}
"""Operators whose float results hold elements of their operands, or constants."""
_FACTORIES = {
    *("polar", "complex", "ones", "ones_like", "new_ones", "eye", "arange", "linspace", "logspace"),
    *("rand", "rand_like", "randn", "randn_like"),
}
"""Operators that make complex numbers, and add none up."""
_ALIKE = ({torch.float32, torch.complex64}, {torch.float16}, {torch.bfloat16})
"""Dtypes between which a move rounds nothing."""
_TANH = {"tanh", "sigmoid", "gelu", "silu", "mish"}
"""Functions that a kernel may make of tanhf."""
_SPECIAL = _TANH | {
    *("exp", "exp2", "expm1", "log", "log1p", "logsumexp", "pow", "erf", "softplus", "elu", "selu", "celu"),
    *("sin", "cos", "sinh", "cosh", "logit", "hardswish", "log_sigmoid_forward"),
}
"""Functions that a kernel makes of exponentials: tanh as 1 - 2 / (exp(2 x) + 1) is off by roundings of 1."""
_ADDENDS = {"addmm": "self", "baddbmm": "self", "addbmm": "self", "addmv": "self", "convolution": "bias"}
"""Operands of products that are added to them: those stay as they are, for they need no tensor core."""


@dataclass(frozen=True)
class Bound:
    """What the rule says of one output, relative to the truth in norm."""

    bound: float
    """N."""
    coarse: float | None = None
    """The error of coarse operands that it comes from; None where it comes from none."""
    smallest: float | None = None
    """The smallest error that coarse operands make, separable or not."""
    honest: float = LEAST
    """What no bound is below."""
    moved: bool = False
    """Whether the reference only moves data."""
    hidden: tuple[float, ...] = ()
    """The errors of coarse operands in places where they are no mark of them."""
    plain: float = 0.0
    """The error of plain arithmetic."""

    @property
    def separable(self) -> bool:
        """Whether coarse operands can be told from honest arithmetic there."""
        return self.moved or self.coarse is not None

    def doubtful(self, error: float) -> float | None:
        """Beyond what bound an error raises the question of coarse operands; None where it does not."""
        if not self.separable:
            return None if self.smallest is None else COARSE_SHARE * self.smallest
        found = [far for far in self.hidden if COARSE_SHARE * far < error < BFLOAT16_STEPS * far]
        return max(COARSE_SHARE * min(found), 2 * self.plain, LEAST) if found else None


def sixteen_bits(tensor: torch.Tensor) -> torch.Tensor:
    """float32 values as 16-bit integers times a scale for each slice of the first dimension (one scale for a
    vector); other tensors, zeros and what is not finite as they are."""
    if tensor.dtype != torch.float32 or not tensor.numel():
        return tensor
    rows = tensor.reshape(tensor.shape[0] if tensor.dim() > 1 else 1, -1)
    usable = rows.isfinite()
    step = rows.masked_fill(~usable, 0.0).abs().amax(1, keepdim=True) / (2**15 - 1)
    rounded = (rows / step).round_().mul_(step)
    return torch.where(usable & (step > 0.0), rounded, rows).reshape(tensor.shape)


class _Rounded(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Rounds the operands of operators, by their numbers among those that `places` are."""

    def __init__(
        self, numbers: Collection[int] = (), rounding: Rounding = torch.clone, *, by_hand: bool = False
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._numbers, self._rounding, self._by_hand = numbers, rounding, by_hand
        self.count = 0
        """Products, gathers and softmaxes of float32 tensors so far."""
        self.moved = True
        """Whether every float so far was moved, not computed."""
        self.adds_complex = False
        """Whether there were sums of complex numbers, which plain arithmetic leaves to torch."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs, name = kwargs or {}, func._overloadpacket.__name__
        softmax = name == "_softmax"
        rounded = False
        if softmax or name in _GATHERS or is_product(name):
            floating = any(tensor.dtype == torch.float32 for tensor in tensors([args, kwargs]))
            rounded = floating and self.count in self._numbers and not func._schema.is_mutable
            self.count += floating
        if rounded and not softmax:
            args, kwargs = self._operands(func, name, args, kwargs)
        named, result = bound(func, args, kwargs), func(*args, **kwargs)
        if self._by_hand:
            result = self._off(func, name.rstrip("_"), named, result)
        if not func.is_view:
            adds = bool(named.get("accumulate") or named.get("reduce"))
            kinds, moves = _kinds([args, kwargs, result]), name in _MOVES and not adds
            self.moved &= not _kinds(result) or (moves and any(map(kinds.issubset, _ALIKE)))
            elementwise = moves or name in _FACTORIES or torch.Tag.pointwise in func.tags
            self.adds_complex |= not elementwise and any(kind.is_complex for kind in kinds)
        return self._exponentials(result, named["dim"]) if rounded and softmax else result

    def _operands(
        self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kept = {_ADDENDS.get(name)}
        if name.startswith("_scaled_dot_product"):  # the scores, which the softmax inside may hide
            kept = {"value", "attn_mask", "attn_bias"}
        named = bound(func, args, kwargs)
        changed = {k: v if k in kept else mapped(v, self._rounding) for k, v in named.items()}
        return tuple(changed[k] for k in [*named][: len(args)]), {k: changed[k] for k in kwargs}

    def _off(self, func: Any, name: str, named: dict[str, Any], result: Any) -> Any:
        """What tensor cores and fast exponentials make of a result: see TRUNCATED and _SPECIAL."""
        if is_product(name):
            change: Rounding = _scaled(1 - 2 * TRUNCATED * _depth(name, named), 1.0, seed=self.count)
        elif name in _SPECIAL and isinstance(result, torch.Tensor) and result.dtype == torch.float32:
            noise = _scaled(-1.0, 1.0, seed=self.count)(result.abs().clamp_(min=1.0))
            change = noise.mul_(FAST_TANH if name in _TANH else LEAST).add
        else:
            return result
        return result.copy_(change(result)) if func._schema.is_mutable else mapped(result, change)

    def _exponentials(self, result: torch.Tensor, dim: int) -> torch.Tensor:
        """The softmax of rounded exponentials: the largest of each row is 1, and exact."""
        largest = result.amax(dim, keepdim=True)
        powers = self._rounding(result / largest)
        return powers / powers.sum(dim, keepdim=True)


def _kinds(value: Any) -> set[torch.dtype]:
    """The floating and complex dtypes of tensors."""
    return {t.dtype for t in tensors(value) if t.is_floating_point() or t.is_complex()}


def _depth(name: str, named: dict[str, Any]) -> int:
    """How many terms the sums of a product have, or more."""
    if name == "convolution":
        return int(named["weight"][0].numel())
    if name.startswith("_scaled_dot_product"):
        return int(max(named["key"].shape[-2:]))
    left = [named[key] for key in ("mat1", "mat", "batch1", "x1", "self") if key in named]
    return max(int(tensor.shape[-1]) for tensor in left[:1] or tensors([named]) if tensor.dim())


class Precision:
    """One problem's bounds, with its weights."""

    def __init__(self, loaded: LoadedProblem, model: torch.nn.Module, arithmetic: Arithmetic) -> None:
        self._loaded, self._model, self._arithmetic = loaded, model, arithmetic
        self._latest = math.inf

    def bounds(self, at: Inputs, sticks: Sequence[Yardstick]) -> list[Bound] | str:
        """For every output what it may be off by at these inputs; or why nobody knows."""
        self._latest = time.monotonic() + MOST_SECONDS
        trace = _Rounded()
        try:
            self._outputs(at, self._model, at.arguments, trace)
            if trace.moved:
                return [Bound(LEAST, moved=True)] * len(sticks)
            if trace.adds_complex:
                return "the reference adds up complex numbers"
            plain = self._arithmetic.plain_errors(at, sticks)
            if plain is None:
                return "plain arithmetic could not be run"
            by_hand = self._by_hand(at, sticks)
            errors = self._errors(at, trace.count)
        except TimeoutError:
            return f"it took longer than {MOST_SECONDS:g} s"
        except (ProblemError, torch.OutOfMemoryError, RuntimeError, ValueError):
            return "the reference could not be run so"  # ValueError: another number of outputs
        bounds = []
        for number, (stick, far, lost) in enumerate(zip(sticks, plain, by_hand, strict=True)):
            if stick.native.dtype != torch.float32:
                bounds.append(Bound(tolerance.norm_floor(stick.native.dtype)))
                continue
            sums = max(tolerance.PLAIN_MULTIPLE * far, lost)
            bounds.append(replace(_bound(stick, sums, [each[number] for each in errors]), plain=far))
        return bounds

    def by_hand_errors(self, at: Inputs, sticks: Sequence[Yardstick]) -> list[float] | None:
        """How far off the outputs are, in norm, where each function that kernels make of exponentials is off
        by what that costs. Results that vanish beside such a function's terms are off by more than they are:
        silu(-16) is 2e-6, and x (1 + tanh(x / 2)) / 2 is off by 5e-7. None where nobody knows."""
        self._latest = time.monotonic() + MOST_SECONDS
        try:
            return self._by_hand(at, sticks)
        except (ProblemError, torch.OutOfMemoryError, RuntimeError, ValueError):
            return None

    def lost_in_search(self, at: Inputs) -> dict[int, float]:
        """What honest float32 may lose in the scores whose indices are outputs, in the largest element,
        relative to the rms of the scores chosen. It is the most of: the multiples of the reference's own
        error and of plain arithmetic that values have; fast exponentials; and what SEARCHED roundings of
        inputs and weights make, as ||x - c||^2 may be computed as ||x||^2 - 2 x c + ||c||^2. Left out is
        what nobody knows."""
        near = _scaled(1 - SEARCHED * UNIT, 1 + SEARCHED * UNIT, seed=at.seed)
        try:
            exact = self._searched(at, wide=True)
            runs = (
                (tolerance.REFERENCE_MULTIPLE, native := self._searched(at)),
                (tolerance.PLAIN_MULTIPLE, self._searched(at, Steps())),
                (1.0, self._searched(at, _Rounded(by_hand=True))),
                (tolerance.ELEMENT_MULTIPLE, self._searched(at, change=near, wide=True)),
            )
            return {
                number: max(times * _farthest(found[number], leaf) for times, found in runs)
                for number, leaf in exact.items()
                if all(number in found for _, found in runs) and leaf.source.dtype == torch.float64
                if native[number].source.dtype == torch.float32 and not native[number].of_input
            }
        except (ProblemError, torch.OutOfMemoryError, RuntimeError, ValueError):
            return {}

    def _searched(
        self,
        at: Inputs,
        mode: TorchDispatchMode | None = None,
        change: Rounding = torch.clone,
        *,
        wide: bool = False,
    ) -> dict[int, IndexLeaf]:
        """What a copy of the model searches, by the output that is its indices; `wide`: in float64."""
        arguments, model = mapped(at.arguments, change), _changed(self._model, change)
        if wide:
            arguments, model = upcast(arguments), model.double()
        with IndexTrace(arguments) as trace, mode or nullcontext():
            value = self._loaded.run(model, arguments, at.seed)
        found: dict[int, IndexLeaf] = trace.leaves(outputs_of(value, at.device))
        return found

    def _by_hand(self, at: Inputs, sticks: Sequence[Yardstick]) -> list[float]:
        outputs = self._outputs(at, self._model, at.arguments, _Rounded(by_hand=True))
        return [
            measured(_flat(mine), stick.exact, stick.shape).reference_relative_norm
            for stick, mine in zip(sticks, outputs, strict=True)
        ]

    def _errors(self, at: Inputs, count: int) -> list[list[float]]:
        """What coarse operands are off by, in rms over the draws: for each place and format the error of each
        output. The first is that of inputs and weights of eleven bits."""
        size = max(1, math.ceil(count / PLACES))
        groups = [range(first, min(first + size, count)) for first in range(0, count, size)]
        runs = [(group, rounding) for group in [None, *groups] for rounding in (eleven_bits, sixteen_bits)]
        squares: list[list[float]] = [[] for _ in runs]
        for draw in range(DRAWS):
            near = _scaled(1 - NEAR, 1 + NEAR, seed=at.seed + draw) if draw else torch.clone
            arguments, model = mapped(at.arguments, near), _changed(self._model, near)
            sure = [_flat(each) for each in self._outputs(at, model, arguments, _Rounded())]
            for number, (group, rounding) in enumerate(runs):
                if group is None:
                    stored, rounded = mapped(arguments, rounding), _changed(model, rounding)
                    coarse = self._outputs(at, rounded, stored, _Rounded())
                else:
                    coarse = self._outputs(at, model, arguments, _Rounded(group, rounding))
                far = [
                    measured(_flat(mine), exact, mine.shape).reference_relative_norm ** 2
                    for mine, exact in zip(coarse, sure, strict=True)
                ]
                before = squares[number] or [0.0] * len(far)
                squares[number] = [a + b for a, b in zip(before, far, strict=True)]
        return [[math.sqrt(total / DRAWS) for total in each] for each in squares]

    def _outputs(
        self, at: Inputs, model: torch.nn.Module, arguments: list[Any], mode: _Rounded
    ) -> list[torch.Tensor]:
        """The outputs of a copy of the model, which may have a state. Raises TimeoutError."""
        if time.monotonic() > self._latest:
            raise TimeoutError
        twin = copy.deepcopy(model)
        with mode:
            value = self._loaded.run(twin, mapped(arguments, torch.clone), at.seed)
        return outputs_of(value, at.device)


def _changed(model: torch.nn.Module, change: Rounding) -> torch.nn.Module:
    """A copy with changed parameters."""
    twin = copy.deepcopy(model)
    for parameter in twin.parameters():
        parameter.data = change(parameter.data)
    return twin


def _bound(stick: Yardstick, sums: float, errors: Sequence[float]) -> Bound:
    """`sums`: what honest sums may be off by. `errors` begins with that of inputs and weights of eleven bits:
    2^13 times the one of a rounding."""
    honest = max(sums, ROUNDINGS * (UNIT + errors[0] / (1 << ELEVEN_BITS)))
    floor = tolerance.norm_floor(stick.native.dtype)
    separable = [error for error in errors if COARSE_SHARE * error >= honest]
    coarse = min(separable, default=None)
    least = min(floor, COARSE_SHARE * coarse) if coarse else floor
    hidden = tuple(error for error in errors if COARSE_SHARE * error < honest)
    return Bound(least, coarse, min(errors), honest, hidden=hidden)


def _farthest(found: IndexLeaf, exact: IndexLeaf) -> float:
    """The largest error of scores, relative to the rms of those chosen; fillers, which are far larger than
    any of these, have none."""
    chosen = exact.chosen.masked_fill(~torch.isfinite(exact.chosen), 0.0)
    error = (found.source.double() - exact.source).abs_()
    error.masked_fill_(exact.source.abs() > 2 * chosen.abs().max(), 0.0).nan_to_num_(0.0, 0.0, 0.0)
    rms = float(chosen.square().mean().sqrt())
    return float(error.max()) / rms if rms > 0.0 else math.inf


def _scaled(low: float, high: float, *, seed: int) -> Rounding:
    """Multiplies each floating element by a number of its own between `low` and `high`."""
    generators: dict[torch.device, torch.Generator] = {}

    def scaled(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor.clone()
        device = tensor.device
        generator = generators.setdefault(device, torch.Generator(device).manual_seed(seed))
        factor = torch.rand(tensor.shape, generator=generator, dtype=torch.float32, device=device)
        return tensor * factor.mul_(high - low).add_(low).to(tensor.dtype)

    return scaled


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return tensor.reshape(-1)
