"""The tolerance policy: how far from the truth an output may be. One module, one derivation.

The yardstick is the *native* reference's own error. With t the float64 truth, r the native reference's
output and c the candidate's, all of one trial, an output of floating dtype is accepted when

    ||c - t|| <= max(REFERENCE_MULTIPLE * ||r - t||, N * ||t||)                         (in norm)
    |c_i - t_i| <= max(REFERENCE_MULTIPLE * max|r - t|, 6 * N * max(|t_i|, rms(t)))     (each element)

where N is the norm floor of the output's dtype. Derivation of the floors:

- float32, N = 5e-5. Summing 10^6 float32 terms one after another, instead of pairwise as torch does, has
  a relative error near sqrt(10^6 / 2) * 2^-24 = 4e-5 of the result's norm: honest, so it must pass. One
  TF32 or float16 product behind float32 tensors has operands rounded to 11 significant bits: a relative
  error of sqrt(2) * 2^-11 / sqrt(3) = 4e-4 in norm, independent of the reduction's length: so it must not.
  5e-5 lies between, eight times below the second.
- float16 and bfloat16: the output's own rounding is 2^-11 and 2^-8 at most, 2^-12 and 2^-9 typically;
  N = 2^-10 and 2^-7 allow accumulation in float32 with a differently rounded intermediate.
- float64: N = 5e-5 * 2^-29, the float32 floor scaled by the ratio of the unit roundoffs.
- Six times N for one element: the largest of 10^9 normally distributed errors is about six deviations.

REFERENCE_MULTIPLE = 8: an algorithm of the same precision class but another order (split-K against
one pass, say) may have a few times the native error; a lower class has hundreds of times.

Norms and rms are relative to the output itself, so small outputs (a softmax over 65,536 elements) are
judged as strictly as large ones: zeros have a relative error of 1. Integers and booleans are equal or
wrong. NaN and infinities must stand where the truth has them, with the same sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from pipeline.contestant.wire import dtype_name
from pipeline.hashing import sha256_json
from pipeline.nouns import ErrorStatistics

REFERENCE_MULTIPLE = 8.0
ELEMENT_MULTIPLE = 6.0
NORM_FLOOR: dict[torch.dtype, float] = {
    torch.float64: 5e-5 * 2.0**-29,
    torch.float32: 5e-5,
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
}
COARSE_FLOOR = 2.0**-3
"""For 8-bit floating outputs, whose spacing is 2^-3 or 2^-4 of the value."""
CHUNK = 1 << 25
"""Elements widened to float64 at a time: comparing needs at most about 1 GiB beside the tensors."""


def policy_sha256() -> str:
    """Hash of the policy's numbers, stored with every verification."""
    floors = {dtype_name(dtype): floor for dtype, floor in NORM_FLOOR.items()}
    return sha256_json([REFERENCE_MULTIPLE, ELEMENT_MULTIPLE, COARSE_FLOOR, floors])


def norm_floor(dtype: torch.dtype) -> float:
    """Relative error in norm that any candidate of this output dtype may have."""
    return NORM_FLOOR.get(dtype, COARSE_FLOOR)


def timed_floor(dtype: torch.dtype, reference_relative_norm: float) -> float:
    """The floor for outputs of timed calls, which are compared with the native result, not with the truth.

    Both may be off by what a trial allows, so twice that: `reference_relative_norm` is the native
    reference's own largest error in the trials.
    """
    return 2 * max(norm_floor(dtype), REFERENCE_MULTIPLE * reference_relative_norm)


@dataclass
class _Sums:
    """Running sums of one pass over a pair of tensors (against the truth)."""

    error_squared: float = 0.0
    truth_squared: float = 0.0
    finite: int = 0
    max_error: float = 0.0


def compare(
    candidate: torch.Tensor,
    native: torch.Tensor,
    truth: torch.Tensor | None,
    *,
    trial: str,
    output: int,
    floor: float | None = None,
) -> ErrorStatistics:
    """How far `candidate` is from the truth, and how many elements lie outside the tolerance.

    All tensors have one shape and lie on one device. `native` is the reference in the problem's dtype;
    `truth` its float64 twin, or None: then the native result is the truth and the floor alone decides.
    `floor` replaces the dtype's norm floor (see `timed_floor`).
    `wrong` is at least 1 whenever the output is not acceptable.
    """
    if not (candidate.is_floating_point() or candidate.is_complex()):
        return _compare_exactly(candidate, native, trial=trial, output=output)
    if candidate.is_complex():
        candidate, native = torch.view_as_real(candidate), torch.view_as_real(native)
        truth = torch.view_as_real(truth) if truth is not None else None
    exact = native if truth is None else truth
    reference = _sums(native, exact)
    mine = _sums(candidate, exact)
    floor = norm_floor(native.dtype) if floor is None else floor
    rms = math.sqrt(reference.truth_squared / max(reference.finite, 1))
    limit = REFERENCE_MULTIPLE * reference.max_error
    found = _Worst()
    start = 0
    for part, sure in _chunks(candidate, exact):
        found.add(part, sure, start, limit, ELEMENT_MULTIPLE * floor, rms)
        start += part.numel()
    truth_norm = math.sqrt(reference.truth_squared)
    allowed = max(REFERENCE_MULTIPLE * math.sqrt(reference.error_squared), floor * truth_norm)
    wrong = found.wrong
    if wrong == 0 and math.sqrt(mine.error_squared) > allowed:
        wrong = 1  # no single element is out of bounds, the whole is
    return ErrorStatistics(
        trial=trial,
        output=output,
        dtype=dtype_name(native.dtype),
        count=candidate.numel(),
        wrong=wrong,
        max_abs=found.max_abs,
        max_rel=found.max_rel,
        relative_norm=_ratio(math.sqrt(mine.error_squared), truth_norm),
        reference_relative_norm=_ratio(math.sqrt(reference.error_squared), truth_norm),
        nan=found.nan,
        first_bad=_index(found.first, native.shape),
        expected=found.expected,
        got=found.got,
    )


@dataclass
class _Worst:
    """The worst elements seen so far."""

    wrong: int = 0
    nan: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    first: int | None = None
    expected: float | None = None
    got: float | None = None

    def add(
        self, part: torch.Tensor, sure: torch.Tensor, start: int, limit: float, relative: float, rms: float
    ) -> None:
        """Takes one chunk: candidate and truth in float64, flat; `start` is its first element's index."""
        finite = torch.isfinite(sure)
        error = (part - sure).abs()
        bound = (sure.abs().clamp(min=rms) * relative).clamp(min=limit)
        same = (part == sure) | (part.isnan() & sure.isnan())
        bad = torch.where(finite, ~(error <= bound), ~same)
        self.wrong += int(bad.sum())
        self.nan += int((part.isnan() & ~sure.isnan()).sum())
        shown = error[torch.isfinite(error)]
        if shown.numel():
            self.max_abs = max(self.max_abs, float(shown.max()))
            ratio = error / sure.abs().clamp(min=rms or 1e-300)
            self.max_rel = max(self.max_rel, float(ratio[torch.isfinite(ratio)].max()))
        if self.first is None and bool(bad.any()):
            place = int(bad.nonzero()[0])
            self.first = start + place
            self.expected, self.got = _json_float(sure[place]), _json_float(part[place])


def _compare_exactly(
    candidate: torch.Tensor, native: torch.Tensor, *, trial: str, output: int
) -> ErrorStatistics:
    bad = (candidate != native).flatten()
    wrong = int(bad.sum())
    first = int(bad.nonzero()[0]) if wrong else None
    difference = 0.0
    if wrong:
        difference = float((candidate.flatten()[bad].double() - native.flatten()[bad].double()).abs().max())
    return ErrorStatistics(
        trial=trial,
        output=output,
        dtype=dtype_name(native.dtype),
        count=native.numel(),
        wrong=wrong,
        max_abs=difference,
        max_rel=0.0 if not wrong else 1.0,
        relative_norm=0.0 if not wrong else wrong / native.numel(),
        reference_relative_norm=0.0,
        first_bad=_index(first, native.shape),
        expected=float(native.flatten()[first]) if first is not None else None,
        got=float(candidate.flatten()[first]) if first is not None else None,
    )


def _sums(value: torch.Tensor, exact: torch.Tensor) -> _Sums:
    """Norms over the elements where both are finite; a non-finite one is counted by `_Worst`."""
    sums = _Sums()
    for part, sure in _chunks(value, exact):
        usable = torch.isfinite(part) & torch.isfinite(sure)
        error = torch.where(usable, part - sure, 0.0)
        sums.error_squared += float(error.square().sum())
        sums.truth_squared += float(torch.where(torch.isfinite(sure), sure, 0.0).square().sum())
        sums.finite += int(torch.isfinite(sure).sum())
        if error.numel():
            sums.max_error = max(sums.max_error, float(error.abs().max()))
    return sums


def _chunks(value: torch.Tensor, exact: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    left, right = value.reshape(-1), exact.reshape(-1)
    for start in range(0, left.numel(), CHUNK):
        yield left[start : start + CHUNK].double(), right[start : start + CHUNK].double()


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
        return 0.0 if error == 0.0 else float(torch.finfo(torch.float64).max)
    return error / norm


def _json_float(value: torch.Tensor) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
