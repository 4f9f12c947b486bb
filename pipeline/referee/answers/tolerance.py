"""The tolerance policy: how far from the truth an output may be. One module, one derivation.

The yardstick is the *native* reference's own error. With t the float64 truth, r the native reference's
output and c the candidate's, all of one trial, an output of floating dtype is accepted when

    ||c - t|| <= max(M * ||r - t||, N * ||t||)                         (in norm)
    |c_i - t_i| <= max(M * max|r - t|, 6 * N * max(|t_i|, rms(t)))     (each element)

where N is the norm floor of the output's dtype and M the multiple. Derivation of the floors:

- float32, N = 5e-5. Summing 10^6 float32 terms one after another, instead of pairwise as torch does, has
  a relative error near sqrt(10^6 / 2) * 2^-24 = 4e-5 of the result's norm: honest, so it must pass. One
  TF32 or float16 product behind float32 tensors has operands rounded to 11 significant bits: a relative
  error of sqrt(2) * 2^-11 / sqrt(3) = 4e-4 in norm, independent of the reduction's length: so it must not.
  5e-5 lies between, eight times below the second.
- float16 and bfloat16: the output's own rounding is 2^-11 and 2^-8 at most, 2^-12 and 2^-9 typically;
  N = 2^-10 and 2^-7 allow accumulation in float32 with a differently rounded intermediate.
- float64: N = 5e-5 * 2^-29, the float32 floor scaled by the ratio of the unit roundoffs.
- Six times N for one element: the largest of 10^9 normally distributed errors is about six deviations.

M = 8 for float32 and float64: an algorithm of the same precision class but another order (split-K against
one pass, say) may have a few times the native error; a lower class has hundreds of times. M = 4 for narrower
outputs, whose native error is mostly their own rounding, which every result shares: one bfloat16 product
has 1.7e-3 of it, and with operands scaled to eight-bit integers by row 1.1e-2, which is six times that.

Outputs of timed calls are held against r, and may be off by twice max(M * e, N) in norm, where e is r's
relative error in the trials' draws (`timed_floor`). Behind float32 that is no room for TF32, and a sum in
turn that one draw in ten would refuse needs it. Behind narrower outputs it is room for eight bits. So where
the inputs are the referee's own, these are held against t as in a trial, but for those within
max(M * e, N) - 2 e of r, which are within max(M * e, N) of t wherever that is (`near_floor`).

A run with `--numerics tf32` accepts for float32 what TF32 products give, N = 2^-9: five times the 4e-4 above.
The same numbers name a result's error class: `fp32-equivalent` within the float32 floor, `tf32-class` within
2^-9, `half-class` within 2^-6 (one bfloat16 product has sqrt(2) * 2^-8 / sqrt(3) = 3e-3, five times that),
`worse` beyond. The first N in this order that holds for the norm, and 6 N for every element, gives the class.

Norms and rms are relative to the output itself, so small outputs (a softmax over 65,536 elements) are
judged as strictly as large ones: zeros have a relative error of 1. Integers and booleans are equal or
wrong. NaN and infinities must stand where the truth has them, with the same sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from pipeline.contestant.wire import dtype_name
from pipeline.hashing import sha256_json
from pipeline.nouns import ErrorClass, ErrorStatistics

REFERENCE_MULTIPLE, NARROW_MULTIPLE = 8.0, 4.0
ELEMENT_MULTIPLE = 6.0
SURE_SHARE = 0.9
"""Of the floor: what a look at float32 may be wrong by is far less than the rest."""
UNBELIEVABLE = 1000.0
"""A float64 twin this many floors away from the native result (5 % for float32) is not its twin."""
NORM_FLOOR: dict[torch.dtype, float] = {
    torch.float64: 5e-5 * 2.0**-29,
    torch.float32: 5e-5,
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
}
TF32_FLOOR, HALF_FLOOR = 2.0**-9, 2.0**-6
CLASS_FLOORS = (
    (ErrorClass.FP32_EQUIVALENT, NORM_FLOOR[torch.float32]),
    (ErrorClass.TF32_CLASS, TF32_FLOOR),
    (ErrorClass.HALF_CLASS, HALF_FLOOR),
)
COARSE_FLOOR = 2.0**-3
"""For 8-bit floating outputs, whose spacing is 2^-3 or 2^-4 of the value."""
_MOST = float(torch.finfo(torch.float64).max)
"""Stands for a ratio too large for a float64: records hold finite numbers only."""
CHUNK = 1 << 25
"""Elements widened to float64 at a time: comparing needs at most about 1 GiB beside the tensors."""


def policy_sha256() -> str:
    """Hash of the policy's numbers, stored with every verification."""
    floors = {dtype_name(dtype): floor for dtype, floor in NORM_FLOOR.items()}
    classes = [TF32_FLOOR, HALF_FLOOR]
    multiples = [REFERENCE_MULTIPLE, NARROW_MULTIPLE, ELEMENT_MULTIPLE]
    return sha256_json([*multiples, UNBELIEVABLE, COARSE_FLOOR, floors, classes])


def norm_floor(dtype: torch.dtype, numerics: str = "fp32") -> float:
    """Relative error in norm that any candidate of this output dtype may have."""
    if numerics == "tf32" and dtype == torch.float32:
        return TF32_FLOOR
    return NORM_FLOOR.get(dtype, COARSE_FLOOR)


def reference_multiple(dtype: torch.dtype) -> float:
    """How many times the native reference's own error an output of this dtype may have."""
    return NARROW_MULTIPLE if dtype.itemsize <= 2 else REFERENCE_MULTIPLE


def gross_floor(dtype: torch.dtype, numerics: str = "fp32") -> float:
    """The floor where rounding is no chance: in sums of equal terms errors have one sign, and grow with the
    number of terms instead of its root. A float32 sum of 10^6 equal terms in turn may be off by 1 %."""
    return max(norm_floor(dtype, numerics), HALF_FLOOR) if dtype == torch.float32 else norm_floor(dtype)


def timed_floor(dtype: torch.dtype, reference_relative_norm: float, numerics: str = "fp32") -> float:
    """The floor for outputs of timed calls, which are compared with the native result, not with the truth.

    Both may be off by what a trial allows, so twice that: `reference_relative_norm` is the native
    reference's own largest error in the trials.
    """
    return 2 * _trial_floor(dtype, reference_relative_norm, numerics)


def near_floor(dtype: torch.dtype, reference_relative_norm: float, numerics: str = "fp32") -> float:
    """How near to the native result an output of a timed call is right in norm, whatever the truth is.

    For narrow outputs by the triangle inequality: the native reference's own error is left out, twice, since
    in another draw it may be more than in the trials. Others have the room of `timed_floor`.
    """
    if dtype.itemsize > 2:
        return timed_floor(dtype, reference_relative_norm, numerics)
    return _trial_floor(dtype, reference_relative_norm, numerics) - 2 * reference_relative_norm


def _trial_floor(dtype: torch.dtype, reference_relative_norm: float, numerics: str) -> float:
    """The relative error in norm that a trial allows."""
    return max(norm_floor(dtype, numerics), reference_multiple(dtype) * reference_relative_norm)


def error_class(found: ErrorStatistics, numerics: str = "fp32") -> ErrorClass | None:
    """What arithmetic this output could come from; None where that says nothing (other dtypes).

    What passes against the native reference's own error is equivalent to float32 unless that reference
    was allowed TF32.
    """
    if found.dtype != "float32":
        return None
    if numerics == "fp32" and found.wrong == 0:
        return ErrorClass.FP32_EQUIVALENT
    odd = found.first_bad is not None and (found.expected is None or found.got is None)
    if odd or found.nan:
        return ErrorClass.WORSE
    for name, floor in CLASS_FLOORS:
        if found.relative_norm <= floor and found.max_rel <= ELEMENT_MULTIPLE * floor:
            return name
    return ErrorClass.WORSE


@dataclass(frozen=True)
class Yardstick:
    """The truth of one output, and how far the native reference is from it."""

    exact: torch.Tensor
    """The truth, flat: float64, or the native result where there is no float64 twin."""
    native: torch.Tensor
    shape: torch.Size
    reference_norm: float
    """Norm of the native reference's error."""
    reference_max: float
    """Its largest element."""
    truth_norm: float
    rms: float
    """Root mean square of the truth's finite elements."""
    all_finite: bool
    """Whether the truth is finite throughout."""

    @property
    def has_truth(self) -> bool:
        """Whether it is more than the native result itself."""
        return self.exact is not self.native

    @property
    def multiple(self) -> float:
        """How many times the native reference's error is allowed."""
        return reference_multiple(self.native.dtype)

    @property
    def reference_relative_norm(self) -> float:
        """The native reference's relative error in norm."""
        return _ratio(self.reference_norm, self.truth_norm)


def yardstick(native: torch.Tensor, truth: torch.Tensor | None) -> Yardstick:
    """What outputs are held against: `native` in the problem's dtype, `truth` its float64 twin or None.

    Both have one shape and lie on one device. A twin that is further from the native result than rounding
    can explain computes something else (a model with state, say); then the native result is the truth.
    """
    shape = native.shape
    if native.is_complex():
        native = torch.view_as_real(native.resolve_conj())
        truth = torch.view_as_real(truth.resolve_conj()) if truth is not None else None
    flat = native.reshape(-1)
    if not flat.is_floating_point():
        return Yardstick(flat, flat, shape, 0.0, 0.0, 0.0, 0.0, True)
    if truth is not None:
        found = _measured(flat, truth.reshape(-1), shape)
        if found.reference_relative_norm <= UNBELIEVABLE * norm_floor(flat.dtype):
            return found
    return _measured(flat, flat, shape)


def _measured(flat: torch.Tensor, exact: torch.Tensor, shape: torch.Size) -> Yardstick:
    """Norms of the truth and of the native error, over the elements where the truth is finite."""
    error_squared = truth_squared = largest = 0.0
    finite = 0
    for start in range(0, flat.numel(), CHUNK):
        sure = exact[start : start + CHUNK].double()
        usable = torch.isfinite(sure)
        finite += int(usable.sum())
        sure = sure.masked_fill(~usable, 0.0)
        truth_squared += float(sure.square().sum())
        if exact is not flat and sure.numel():
            error = flat[start : start + CHUNK].double() - sure  # not in place: float64 is not copied
            error = error.masked_fill_(~usable, 0.0).nan_to_num_(0.0, 0.0, 0.0)
            error_squared += float(error.square().sum())
            largest = max(largest, float(error.abs_().max()))
    return Yardstick(
        exact=exact,
        native=flat,
        shape=shape,
        reference_norm=math.sqrt(error_squared),
        reference_max=largest,
        truth_norm=math.sqrt(truth_squared),
        rms=math.sqrt(truth_squared / max(finite, 1)),
        all_finite=finite == flat.numel(),
    )


def compare(
    candidate: torch.Tensor,
    native: torch.Tensor,
    truth: torch.Tensor | None,
    *,
    trial: str,
    output: int,
    floor: float | None = None,
) -> ErrorStatistics:
    """`compare_with` for one candidate: how far it is from the truth."""
    return compare_with(yardstick(native, truth), candidate, trial=trial, output=output, floor=floor)


def compare_with(
    stick: Yardstick, candidate: torch.Tensor, *, trial: str, output: int, floor: float | None = None
) -> ErrorStatistics:
    """How far `candidate` is from the truth, and how many of its elements lie outside the tolerance.

    `candidate` has the native output's shape and dtype. `floor` replaces the dtype's norm floor (see
    `timed_floor`). `wrong` is at least 1 whenever the output is not acceptable.
    """
    if candidate.is_complex():
        candidate = torch.view_as_real(candidate.resolve_conj())
    mine = candidate.reshape(-1)
    if not stick.native.is_floating_point():
        return _compare_exactly(mine, stick, trial=trial, output=output)
    floor = norm_floor(stick.native.dtype) if floor is None else floor
    found = _Worst()
    for start in range(0, mine.numel(), CHUNK):
        part, sure = mine[start : start + CHUNK].double(), stick.exact[start : start + CHUNK].double()
        found.add(part, sure, start, stick, ELEMENT_MULTIPLE * floor)
    error_norm = math.sqrt(found.error_squared)
    allowed = max(stick.multiple * stick.reference_norm, floor * stick.truth_norm)
    wrong = found.wrong
    if wrong == 0 and error_norm > allowed:
        wrong = 1  # no single element is out of bounds, the whole is
    return ErrorStatistics(
        trial=trial,
        output=output,
        dtype=dtype_name(stick.native.dtype),
        count=mine.numel(),
        wrong=wrong,
        max_abs=found.max_abs,
        max_rel=found.max_rel,
        relative_norm=_ratio(error_norm, stick.truth_norm),
        reference_relative_norm=stick.reference_relative_norm,
        nan=found.nan,
        first_bad=_index(found.first, stick.shape),
        expected=found.expected,
        got=found.got,
    )


def surely_within(candidate: torch.Tensor, native: torch.Tensor, floor: float) -> bool:
    """Whether `compare_with(yardstick(native, None), candidate, floor=floor)` surely finds nothing wrong.

    Said from a look or two in float32. First: no element is further off than `floor` times the root mean
    square (rms) of all. Then neither is the norm, and every element is well within its own bound. Else: none
    is further off than `floor / sqrt(2)` times its own size, or the rms if that is more. The squares of these
    bounds sum to at most `floor**2 / 2` times the sum of all elements' squares and of as many times rms
    squared, which are equal: so the norm is within `floor` again. False says nothing.
    """
    if candidate.shape != native.shape or candidate.dtype != native.dtype:
        return False
    if not native.is_floating_point():
        return torch.equal(candidate, native)
    mine, sure = candidate.reshape(-1), native.reshape(-1)
    if not sure.numel():
        return True
    wide = sure.dtype if sure.element_size() >= 4 else torch.float32
    parts = [slice(start, start + CHUNK) for start in range(0, sure.numel(), CHUNK)]
    squares, largest = [], []
    for part in parts:
        known = sure[part].to(wide)
        squares.append(torch.linalg.vector_norm(known).square())
        largest.append((mine[part].to(wide) - known).abs_().max())
    rms = (torch.stack(squares).sum() / sure.numel()).sqrt()
    allowed = SURE_SHARE * floor
    if not math.isfinite(float(rms)) or float(torch.stack(largest).max()) <= allowed * float(rms):
        return math.isfinite(float(rms))
    found = []
    for part in parts:
        known = sure[part].to(wide)
        error = (mine[part].to(wide) - known).abs_()
        found.append(error.div_(known.abs().clamp_(min=rms)).max())
    return float(torch.stack(found).max()) <= allowed / math.sqrt(2)


@dataclass
class _Worst:
    """Running sums and the worst elements of one candidate."""

    wrong: int = 0
    nan: int = 0
    error_squared: float = 0.0
    max_abs: float = 0.0
    max_rel: float = 0.0
    first: int | None = None
    expected: float | None = None
    got: float | None = None

    def add(
        self, part: torch.Tensor, sure: torch.Tensor, start: int, stick: Yardstick, relative: float
    ) -> None:
        """Takes one chunk: candidate and truth in float64, flat; `start` is its first element's index."""
        error = (part - sure).abs_()
        squared = float(error.square().sum())
        scale = sure.abs().clamp_(min=stick.rms or 1e-300)
        if stick.all_finite and math.isfinite(squared):
            bad = error > (scale * relative).clamp_(min=stick.multiple * stick.reference_max)
        else:
            bad = self._careful(part, sure, error, (scale * relative), stick)
            error.nan_to_num_(0.0, 0.0, 0.0)
            squared = float(error.square().sum())
        self.error_squared += squared
        self.wrong += int(bad.sum())
        self.max_abs = max(self.max_abs, float(error.max()))
        self.max_rel = max(self.max_rel, float(error.div_(scale).nan_to_num_(0.0, 0.0, 0.0).max()))
        if self.first is None and bool(bad.any()):
            place = int(bad.nonzero()[0])
            self.first = start + place
            self.expected, self.got = _json_float(sure[place]), _json_float(part[place])

    def _careful(
        self,
        part: torch.Tensor,
        sure: torch.Tensor,
        error: torch.Tensor,
        bound: torch.Tensor,
        stick: Yardstick,
    ) -> torch.Tensor:
        """Which elements are bad where NaN or infinities are about: they must stand where the truth's do."""
        self.nan += int((part.isnan() & ~sure.isnan()).sum())
        within = error <= bound.clamp_(min=stick.multiple * stick.reference_max)
        same = (part == sure) | (part.isnan() & sure.isnan())
        return torch.where(torch.isfinite(sure), ~within, ~same)


def _compare_exactly(
    candidate: torch.Tensor, stick: Yardstick, *, trial: str, output: int
) -> ErrorStatistics:
    bad = candidate != stick.native
    wrong = int(bad.sum())
    first = int(bad.nonzero()[0]) if wrong else None
    difference = 0.0
    if wrong:
        difference = float((candidate[bad].double() - stick.native[bad].double()).abs().max())
    return ErrorStatistics(
        trial=trial,
        output=output,
        dtype=dtype_name(stick.native.dtype),
        count=candidate.numel(),
        wrong=wrong,
        max_abs=difference,
        max_rel=1.0 if wrong else 0.0,
        relative_norm=wrong / max(candidate.numel(), 1),
        reference_relative_norm=0.0,
        first_bad=_index(first, stick.shape),
        expected=float(stick.native[first]) if first is not None else None,
        got=float(candidate[first]) if first is not None else None,
    )


def _index(flat: int | None, shape: torch.Size) -> tuple[int, ...] | None:
    if flat is None:
        return None
    out: list[int] = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        out.append(place)
    return tuple(reversed(out))


def _ratio(error: float, norm: float) -> float:
    if norm == 0.0:
        return 0.0 if error == 0.0 else _MOST
    ratio = error / norm
    return ratio if math.isfinite(ratio) else _MOST


def _json_float(value: torch.Tensor) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
