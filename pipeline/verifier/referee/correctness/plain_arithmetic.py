"""The plainest honest way to compute a problem: float32 sums one term after another, variances of these.

A kernel that a person writes by hand adds up a row in one loop, and gets a variance from the sum and the sum
of squares. Torch's own reductions are better than that: they add in pairs, or in blocks. So the native
reference's error says nothing of how far such a kernel may honestly be off. It depends on the number of
terms and on what they are: errors of a million random terms mostly cancel, those of a million equal terms
all have one sign, and a variance in one pass loses what the mean is larger than the spread. Nothing of this
is guessed here. The reference runs once more at these very inputs, and every reduction in it is replaced by
the plain one; how far that is from the truth, any honest kernel may be.

A loop over 10^8 terms would take minutes. Its result is computed at once. Say the sum so far is 1000.25.
float32 numbers are 2^-14 apart there, so adding 0.3 adds 0.3 rounded to a multiple of 2^-14, whatever the
digits of the sum: it is such a multiple itself. So a float32 sum in turn is the sum of its terms, each
rounded to the spacing of float32 numbers at the sum so far, which a float64 cumulative sum says well enough.
Products of matrices and convolutions are accumulated for real, one slice of the summed dimension at a time.

`Arithmetic` makes a wider tolerance of this. A candidate that the tolerance refuses by little is looked at
again. The reference is run with plain arithmetic at these very inputs, and PLAIN_MULTIPLE times its error is
allowed: since kernels add in other orders, and are none of them the plainest one exactly.

On drawn inputs that must not help TF32, float16 or worse. So there the reference is run once more for each
of its operators, with that operator's operands rounded to the 11 bits of both; then with all rounded so,
with its inputs, and with its outputs. Wherever the tolerance refuses such a result, room ends at half its
error. A candidate that rounds there is off by as much itself, and stays refused.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelproof.types import ErrorStatistics
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.contestant.loop import outputs_of
from kernelproof.verifier.referee.correctness import tolerance
from kernelproof.verifier.referee.correctness.comparing import (
    ExtraTolerance,
    Yardstick,
    compare_with,
    measured,
)
from kernelproof.verifier.referee.correctness.indices import bound, written
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError, mapped

CHUNK = 1 << 24
"""Terms that are added up at a time: some 640 MiB of float64."""
SLICES = {"cuda": 1 << 37, "cpu": 1 << 30}
"""Most multiplications of a product that is accumulated slice by slice (a second or so); beyond, several
slices are taken at once, and the error is taken for smaller than it may be."""
ELEVEN_BITS = 13
"""Bits of a float32 significand that TF32 and float16 do not have."""


def eleven_bits(tensor: torch.Tensor) -> torch.Tensor:
    """float32 values rounded to 11 significant bits; other tensors as they are."""
    if tensor.dtype != torch.float32:
        return tensor
    bits = tensor.contiguous().view(torch.int32)
    half = 1 << (ELEVEN_BITS - 1)
    rounded = ((bits + half) & -(1 << ELEVEN_BITS)).view(torch.float32)
    return torch.where(torch.isfinite(tensor) & torch.isfinite(rounded), rounded, tensor)


class Steps(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs what is inside with float32 arithmetic done otherwise, and counts operators.

    With `coarse` None products and reductions are done the plain way; else torch does everything, but the
    operators of these numbers (from 0) have their float32 operands rounded to eleven bits.
    """

    def __init__(self, coarse: Collection[int] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._coarse = coarse
        self.count = 0
        """Operators so far that compute from float32 tensors."""
        self.products = 0
        """The operators among them that a tensor core can do: products, convolutions, attention, recurrent
        layers."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.is_view or not any(t.dtype == torch.float32 for t in tensors([args, kwargs])):
            return func(*args, **kwargs)
        name, number = func._overloadpacket.__name__, self.count
        self.count += 1
        self.products += is_product(name)
        if self._coarse is None:
            return _plainly(func, name, args, kwargs)
        if number in self._coarse:
            kept = {id(tensor) for _, tensor in written(func, bound(func, args, kwargs))}

            def change(tensor: torch.Tensor) -> torch.Tensor:
                return tensor if id(tensor) in kept else eleven_bits(tensor)

            args, kwargs = mapped(args, change), mapped(kwargs, change)
        return func(*args, **kwargs)


def _plainly(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The operator's result, the plain way where there is one."""
    way, named = _PRODUCTS.get(name) or _REDUCTIONS.get(name), bound(func, args, kwargs)
    if way is None or "out" in named or _dtype_of(named) != torch.float32:
        return func(*args, **kwargs)
    done = way(named)
    if done is None:
        return func(*args, **kwargs)
    return done(func(*args, **kwargs)) if callable(done) else done


def _dtype_of(named: dict[str, Any]) -> torch.dtype | None:
    """The dtype that the operator computes in, if all its floating operands have one dtype."""
    found = {v.dtype for v in named.values() if isinstance(v, torch.Tensor) and v.is_floating_point()}
    wanted = named.get("dtype")
    found |= {wanted} if isinstance(wanted, torch.dtype) else set()
    return found.pop() if len(found) == 1 else None


# Sums. `rows` are (outputs, terms).


def in_turn(rows: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor] | None = None) -> torch.Tensor:
    """A float32 sum of each row, one term after another; of `change(row)` if given: see above.

    `rows` has two dimensions; the result, in float64, has one. Where its rounding errors happen to cancel,
    the result has the error that is likely by chance, as another order would have it.
    """
    count, length = rows.shape
    exact, error, squared = torch.zeros(3, count, dtype=torch.float64, device=rows.device)
    many = max(1, CHUNK // max(length, 1))
    for first in range(0, count, many):
        chunk = rows[first : first + many]
        reached = torch.zeros(chunk.shape[0], 1, dtype=torch.float64, device=rows.device)
        for start in range(0, length, CHUNK):
            terms = chunk[:, start : start + CHUNK].double()
            terms = change(terms) if change else terms
            added, reached = _added(terms, reached)
            lost = added.sub_(terms)
            error[first : first + many] += lost.sum(1)
            squared[first : first + many] += lost.square_().sum(1)
        exact[first : first + many] = reached[:, 0]
    chance = squared.sqrt_()
    likely: torch.Tensor = torch.where(error.abs() < chance, torch.where(error < 0, -chance, chance), error)
    return likely.add_(exact)


def _added(terms: torch.Tensor, reached: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The amount that each term adds to a float32 sum, along the last dimension, and the sum reached at the
    end."""
    so_far = terms.cumsum(-1).add_(reached)
    spacing = torch.exp2((torch.frexp(so_far).exponent.clamp_(min=-125) - 24).double())
    return (terms / spacing).round_().mul_(spacing), so_far[..., -1:].clone()


def _split(tensor: torch.Tensor, dims: Any, keep: bool) -> tuple[torch.Tensor, list[int]]:
    """The tensor as (outputs, terms), and the shape of what a reduction over `dims` gives."""
    rank = tensor.dim()
    listed = [dims] if isinstance(dims, int) else list(dims or ())
    over = sorted({d % rank for d in listed} or range(rank)) if rank else []
    kept = [d for d in range(rank) if d not in over]
    shape = [1 if d in over else tensor.shape[d] for d in range(rank) if keep or d in kept]
    terms = math.prod(tensor.shape[d] for d in over)
    return tensor.permute(*kept, *over).reshape(-1, terms) if rank else tensor.reshape(1, 1), shape


def _of_rows(named: dict[str, Any]) -> tuple[torch.Tensor, list[int]]:
    return _split(named["self"], named.get("dim"), bool(named.get("keepdim", False)))


def _sum(named: dict[str, Any]) -> torch.Tensor:
    rows, shape = _of_rows(named)
    return in_turn(rows).float().reshape(shape)


def _mean(named: dict[str, Any]) -> torch.Tensor:
    rows, shape = _of_rows(named)
    return (in_turn(rows).float() / rows.shape[1]).reshape(shape)


def _cumsum(named: dict[str, Any]) -> torch.Tensor:
    terms = named["self"].movedim(named["dim"], -1).double()
    added, _ = _added(terms, torch.zeros((), dtype=torch.float64, device=terms.device))
    return added.cumsum(-1).float().movedim(-1, named["dim"])


def _norm(named: dict[str, Any]) -> torch.Tensor | None:
    order = named.get("ord", named.get("p"))
    if order not in (None, 2, 1):
        return None
    rows, shape = _of_rows(named)
    found = in_turn(rows, torch.abs if order == 1 else torch.square).float()
    return (found if order == 1 else found.sqrt_()).reshape(shape)


def _moments(rows: torch.Tensor, correction: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance of each row in float32: in one pass, from the sum and the sum of squares, or in two
    where that is further off. Terms of few sizes are all rounded alike, by little in one pass and by half in
    the other."""
    count = rows.shape[1]
    mean, spread = in_turn(rows).float() / count, rows.var(1, correction=0)
    one = in_turn(rows, torch.square).float() / count - mean.square()
    two = in_turn(rows - mean[:, None], torch.square).float() / count
    variance = torch.where((two - spread).abs() > (one - spread).abs(), two, one)
    return mean, variance * (count / max(count - correction, 1.0)) if correction else variance


def _variance(*, root: bool, with_mean: bool) -> Callable[[dict[str, Any]], Any]:
    def way(named: dict[str, Any]) -> Any:
        rows, shape = _of_rows(named)
        correction = named.get("correction")
        mean, variance = _moments(rows, 1.0 if correction is None else float(correction))
        found = (variance.clamp_(min=0.0).sqrt_() if root else variance).reshape(shape)
        return (found, mean.reshape(shape)) if with_mean else found

    return way


def _normalised(rows: torch.Tensor, eps: float) -> torch.Tensor:
    mean, scale = _farthest(rows, eps)
    return (rows - mean[:, None]).mul_(scale[:, None])


def _farthest(rows: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean to take off the rows, and the scale to multiply them with then.

    A variance that is nothing but rounding has either sign: kernels that add in another order may be left
    with zero. Then all depends on the mean's error, and two partial sums may be off where one is not. So of
    such rows the farthest result counts.
    """
    spread, centre = rows.var(1, correction=0), rows.mean(1)
    mean, variance = _moments(rows)
    scale, exact = (variance.clamp(min=0.0) + eps).rsqrt(), (spread + eps).rsqrt()
    lost = (variance - spread).abs() >= spread
    if eps <= 0.0 or not lost.any():
        return mean, scale
    halves = [in_turn(half) for half in rows.tensor_split(2, 1)]
    other = (halves[0] + halves[1]).float() / rows.shape[1]
    mean = torch.where(lost & ((other - centre).abs() > (mean - centre).abs()), other, mean)

    def error(scale: torch.Tensor) -> torch.Tensor:
        return spread * (scale - exact).square() + (scale * (mean - centre)).square()

    largest = torch.full_like(scale, eps).rsqrt_()
    return mean, torch.where(lost & (error(largest) > error(scale)), largest, scale)


def _scaled(value: torch.Tensor, weight: Any, bias: Any, shape: Sequence[int]) -> torch.Tensor:
    value = value * weight.reshape(shape) if weight is not None else value
    return value + bias.reshape(shape) if bias is not None else value


def _first_of(value: torch.Tensor) -> Callable[[Any], Any]:
    """Replaces an operator's first result; the others are torch's."""
    return lambda results: (value, *results[1:])


def _layer_norm(named: dict[str, Any]) -> Any:
    x, shape = named["input"], list(named["normalized_shape"])
    rows = _normalised(x.reshape(-1, math.prod(shape)), named["eps"]).reshape(x.shape)
    return _first_of(_scaled(rows, named.get("weight"), named.get("bias"), shape))


def _group_norm(named: dict[str, Any]) -> Any:
    x, groups = named["input"], named["group"]
    rows = _normalised(x.reshape(x.shape[0] * groups, -1), named["eps"]).reshape(x.shape)
    return _first_of(_scaled(rows, named.get("weight"), named.get("bias"), [-1] + [1] * (x.dim() - 2)))


def _batch_norm(named: dict[str, Any]) -> Any:
    x = named["input"]
    if not (named.get("training") or named.get("train")):
        return None
    turned = x.transpose(0, 1)
    rows = _normalised(turned.reshape(x.shape[1], -1), float(named.get("eps") or named["epsilon"]))
    value = rows.reshape(turned.shape).transpose(0, 1)
    return _first_of(_scaled(value, named.get("weight"), named.get("bias"), [-1] + [1] * (x.dim() - 2)))


def _softmax(*, logarithm: bool) -> Callable[[dict[str, Any]], torch.Tensor]:
    def way(named: dict[str, Any]) -> torch.Tensor:
        x: torch.Tensor = named["self"].movedim(named["dim"], -1)
        below = x - x.amax(-1, keepdim=True)
        total = in_turn(below.reshape(-1, x.shape[-1]).exp()).float().reshape(*x.shape[:-1], 1)
        found = below - total.log() if logarithm else below.exp_().div_(total)
        return found.movedim(-1, named["dim"])

    return way


def _logsumexp(named: dict[str, Any]) -> torch.Tensor:
    rows, shape = _of_rows(named)
    most = rows.amax(1, keepdim=True)
    most = torch.where(torch.isfinite(most), most, 0.0)
    return in_turn((rows - most).exp_()).float().log_().add_(most[:, 0]).reshape(shape)


def _squared_error(named: dict[str, Any]) -> torch.Tensor | None:
    reduction = named.get("reduction", 1)
    if reduction == 0:
        return None
    error = (named["self"] - named["target"]).reshape(1, -1)
    found = in_turn(error, torch.square).float()
    found = found / error.shape[1] if reduction == 1 else found
    return found.reshape(())


# Products: one slice of the summed dimension after another, in float32.


def _slices(length: int, outputs: int, device: torch.device) -> list[slice]:
    wide = math.ceil(length * outputs / SLICES.get(device.type, SLICES["cpu"]))
    return [slice(start, start + wide) for start in range(0, length, wide)]


def _multiplied(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """(..., m, k) times (..., k, n)."""
    total = left.new_zeros(*left.shape[:-1], right.shape[-1])
    for part in _slices(left.shape[-1], total.numel(), left.device):
        if part.stop - part.start == 1:
            total.addcmul_(left[..., part], right[..., part, :])
        else:
            total += left[..., part] @ right[..., part, :]
    return total


def _mm(left: str, right: str) -> Callable[[dict[str, Any]], torch.Tensor]:
    def way(named: dict[str, Any]) -> torch.Tensor:
        one, other = named[left], named[right]
        if other.dim() == 1:  # mv and dot
            one = one[None] if one.dim() == 1 else one
            found = in_turn(one.double() * other.double()).float()
            return found if named[left].dim() == 2 else found[0]
        return _multiplied(one, other)

    return way


def _added_mm(left: str, right: str) -> Callable[[dict[str, Any]], torch.Tensor]:
    def way(named: dict[str, Any]) -> torch.Tensor:
        product: torch.Tensor = _multiplied(named[left], named[right]) * named.get("alpha", 1)
        return product.add(named["self"] * named.get("beta", 1))

    return way


def _convolution(named: dict[str, Any]) -> torch.Tensor:
    """One input channel of each group after another; taps of one channel together, as torch adds them."""
    x, weight, groups = named["input"], named["weight"], named["groups"]
    axes, deep = weight.dim() - 2, x.shape[-weight.dim() + 1] // groups
    grouped = x.unflatten(-axes - 1, (groups, deep))
    turned = named["transposed"]
    slices = weight.unflatten(0, (groups, deep)) if turned else weight
    settings = [named[key] for key in ("stride", "padding", "dilation", "transposed", "output_padding")]

    def part(channel: int) -> torch.Tensor:
        mine = grouped.select(-axes - 1, channel)
        kernel = slices[:, channel] if turned else slices[:, channel : channel + 1]
        done: torch.Tensor = torch.ops.aten.convolution(mine, kernel, None, *settings, groups)
        return done

    total = part(0)
    for channel in range(1, deep):
        total += part(channel)
    bias = named.get("bias")
    return total if bias is None else total.add_(bias.reshape([-1] + [1] * axes))


_REDUCTIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "sum": _sum,
    "mean": _mean,
    "cumsum": _cumsum,
    "linalg_vector_norm": _norm,
    "norm": _norm,
    "var": _variance(root=False, with_mean=False),
    "std": _variance(root=True, with_mean=False),
    "var_mean": _variance(root=False, with_mean=True),
    "std_mean": _variance(root=True, with_mean=True),
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm,
    "cudnn_batch_norm": _batch_norm,
    "_softmax": _softmax(logarithm=False),
    "_log_softmax": _softmax(logarithm=True),
    "logsumexp": _logsumexp,
    "mse_loss": _squared_error,
}
_PRODUCTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "mm": _mm("self", "mat2"),
    "bmm": _mm("self", "mat2"),
    "mv": _mm("self", "vec"),
    "dot": _mm("self", "tensor"),
    "addmm": _added_mm("mat1", "mat2"),
    "baddbmm": _added_mm("batch1", "batch2"),
    "convolution": _convolution,
}
_OTHER_PRODUCTS = (
    "_scaled_dot_product",
    "_cudnn_rnn",
    "mkldnn_rnn_layer",
    "_thnn_fused",
    "_cdist_forward",
    "addmv",
    "addbmm",
)
"""Products that torch does in the plain run too."""


def is_product(operator: str) -> bool:
    """Whether a tensor core can do this operator, named without its overload."""
    return operator in _PRODUCTS or operator.startswith(_OTHER_PRODUCTS)


INPUTS = (-1,)
"""Stands for no operator, but the problem's own inputs, as coarse."""


@dataclass(frozen=True)
class Inputs:
    """Arguments and seed for a run of the reference."""

    arguments: list[Any]
    seed: int
    """The seed of forward's own randomness."""
    device: torch.device


class Arithmetic:
    """A problem's outputs when its steps use other arithmetic."""

    def __init__(self, loaded: LoadedProblem, model: torch.nn.Module) -> None:
        self._loaded, self._model = loaded, model
        self._ends: dict[int, float] = {}
        """The largest allowed error on drawn inputs, by output: relative to the truth in norm."""

    def products(self, at: Inputs) -> int:
        """How many products the reference has that a tensor core could do."""
        return self._outputs(at, coarse=())[1].products

    def with_extra_tolerance(
        self, at: Inputs, sticks: Sequence[Yardstick], errors: Sequence[ErrorStatistics], *, drawn: bool
    ) -> list[Yardstick] | None:
        """The yardsticks with room for what a candidate's outputs are found to be without; or None."""
        widest = tolerance.plain_ceiling(drawn=drawn)
        if not all(_within_reach(stick, each, widest) for stick, each in zip(sticks, errors, strict=True)):
            return None
        outputs, seen = self._outputs(at, coarse=None)
        sized = any(each.wrong and stick.noise is None for stick, each in zip(sticks, errors, strict=True))
        if outputs is None or (drawn and sized and not self._know_ends(at, sticks, seen.count)):
            return None
        widened = list(sticks)
        for number, (stick, each, plain) in enumerate(zip(sticks, errors, outputs, strict=True)):
            if each.wrong and stick.noise is not None:
                widened[number] = _noisier(stick, plain, stick.noise)
            elif each.wrong:
                ceiling = min(widest, self._ends.get(number, widest)) if drawn else widest
                widened[number] = replace(stick, extra=_extra_tolerance(stick, plain, ceiling))
        return widened

    def with_plain_error(
        self, at: Inputs, sticks: Sequence[Yardstick]
    ) -> tuple[list[Yardstick], float] | None:
        """Yardsticks with all the room that plain arithmetic asks for, where that is more than any tolerance
        allows, and its error in norm; None where it is not so."""
        extras = self._extras(at, sticks)
        if extras is None:
            return None
        sizes = zip(sticks, extras, strict=True)
        worst = max((extra.norm / stick.truth_norm for stick, extra in sizes if extra), default=0.0)
        if worst <= tolerance.PLAIN_MULTIPLE * tolerance.HALF_FLOOR:
            return None
        widened = [replace(stick, extra=extra) for stick, extra in zip(sticks, extras, strict=True)]
        return widened, worst / tolerance.PLAIN_MULTIPLE

    def plain_errors(self, at: Inputs, sticks: Sequence[Yardstick]) -> list[float] | None:
        """The relative error in norm of plain arithmetic for every output; None where it cannot be run."""
        extras = self._extras(at, sticks)
        if extras is None:
            return None
        share = tolerance.PLAIN_MULTIPLE
        return [e.norm / s.truth_norm / share if e else 0.0 for s, e in zip(sticks, extras, strict=True)]

    def _extras(self, at: Inputs, sticks: Sequence[Yardstick]) -> list[ExtraTolerance | None] | None:
        outputs, _ = self._outputs(at, coarse=None)
        pairs = zip(sticks, outputs or (), strict=outputs is not None)
        return None if outputs is None else [_extra_tolerance(s, plain, math.inf) for s, plain in pairs]

    def _know_ends(self, at: Inputs, sticks: Sequence[Yardstick], steps: int) -> bool:
        """Finds out once what coarse operands are off by, step by step. False where they are too many."""
        if self._ends:
            return True
        if steps > tolerance.COARSE_STEPS:
            return False
        ends = dict.fromkeys(range(len(sticks)), math.inf)
        for coarse in [*((number,) for number in range(steps)), range(steps), INPUTS]:
            outputs, _ = self._outputs(at, coarse=coarse)
            if outputs is None:
                return False
            for number, (stick, there) in enumerate(zip(sticks, outputs, strict=True)):
                seen = compare_with(stick, there, trial="coarse", output=number)
                if seen.wrong:
                    ends[number] = min(ends[number], seen.relative_norm / tolerance.COARSE_DISTANCE)
        self._ends = ends
        return True

    def _outputs(
        self, at: Inputs, *, coarse: Collection[int] | None
    ) -> tuple[list[torch.Tensor] | None, Steps]:
        """The outputs, in the problem's own dtypes, and the steps (see there). None where memory is short, or
        where the problem cannot be run so."""
        steps = Steps(coarse)
        change = eleven_bits if coarse is INPUTS else torch.Tensor.clone
        try:
            twin = copy.deepcopy(self._model)
            with steps:
                value = self._loaded.run(twin, mapped(at.arguments, change), at.seed)
            return outputs_of(value, at.device), steps
        except (ProblemError, torch.OutOfMemoryError, RuntimeError):
            return None, steps


def _within_reach(stick: Yardstick, error: ErrorStatistics, ceiling: float) -> bool:
    """Whether an output is right, or wrong by so little that room up to the ceiling could help."""
    if error.wrong == 0:
        return True
    if stick.native.dtype != torch.float32 or not stick.has_truth or error.nan or not stick.all_finite:
        return False
    if stick.noise is not None:
        return True
    return error.relative_norm <= ceiling and error.max_rel <= tolerance.ELEMENT_MULTIPLE * ceiling


def _noisier(stick: Yardstick, plain: torch.Tensor, noise: torch.Tensor) -> Yardstick:
    """The yardstick of an output that is noise, with as much of it as plain arithmetic makes."""
    if plain.dtype != torch.float32 or plain.shape != stick.shape:
        return stick
    error = (plain.reshape(-1).double() - stick.exact).masked_fill_(noise == 0.0, 0.0).abs_()
    share = tolerance.PLAIN_MULTIPLE / tolerance.ELEMENT_MULTIPLE
    far = share * float(error.nan_to_num_(0.0, 0.0, 0.0).max())
    return replace(stick, noise=torch.where(noise > 0.0, noise.clamp(min=far), noise))


def _extra_tolerance(stick: Yardstick, plain: torch.Tensor, ceiling: float) -> ExtraTolerance | None:
    if not stick.native.dtype == plain.dtype == torch.float32 or plain.shape != stick.shape:
        return None
    found = measured(plain.reshape(-1), stick.exact, stick.shape)
    multiple = tolerance.PLAIN_MULTIPLE
    return ExtraTolerance(multiple * found.reference_norm, multiple * found.reference_max, ceiling)
