"""The tolerance policy: how far from the truth an output may be. One module, one derivation.

Where coarse operands are off by little, a smaller N takes the place of float32's: see `precision`.

The yardstick is the *native* reference's own error. With t the float64 truth, r the native reference's
output and c the candidate's, all of one trial, an output of floating dtype is accepted when

    ||c - t|| <= max(M * ||r - t||, N * ||t||)                         (in norm)
    |c_i - t_i| <= max(M * max|r - t|, 6 * N * max(|t_i|, rms(t)))     (each element)

where N is the norm floor of the output's dtype and M the multiple. Derivation of the floors:

- float32, N = 5e-5. Summing 10^6 float32 terms of both signs one after another, instead of pairwise as
  torch does, has a relative error near sqrt(10^6 / 2) * 2^-24 = 4e-5 of the result's norm: honest, so it
  must pass. One TF32 or float16 product behind float32 tensors has operands rounded to 11 significant bits:
  a relative error of sqrt(2) * 2^-11 / sqrt(3) = 4e-4 in norm, independent of the reduction's length: so it
  must not. 5e-5 lies between, eight times below the second.
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

Few large elements. Strassen's product, say, adds rows of one operand and columns of the other before it
multiplies. It is stable in norm, not element by element (Higham, Accuracy and Stability of Numerical
Algorithms, 2002, ch. 23). On the variant `spikes` an element of 512 may meet another of 512 in a product, and
the 2.6e5 cancel in the result, which need not have any large element: so the error is no multiple of
max|t|, which was 2,100 where an element was off by 0.22. In norm it is small. So on that variant an element
of a result of four bytes or more may be off by W u ||t|| (`few_large_slack`), with u the unit roundoff, 2^-24
for float32. W = 64: where a float32 spike meets another so in a product of 4096 x 2048 x 4096, and the other
terms are added to it in turn, one of two results is off by 3.5 u ||t|| or more, one of a thousand by 43, and
the worst of 20,000 by 63. 64 u = 3.8e-6 is a thirteenth of N, so the bound in norm is still what counts: 170
such elements reach it. Other trials do not have it: there all elements are of one size.

Plain arithmetic. Other sums err more. 10^6 squares of uniform numbers in one running sum: 4e-4, since small
terms at a large sum are rounded with a bias; n equal terms: up to n * 2^-25; a variance as mean of squares
less square of the mean: the same times 1 + mean^2 / variance. So a candidate that is wrong by little, behind
float32, is looked at again. With p what the reference gives when all its sums are in turn and all variances
in one pass (`plain`), an output may be as far off as

    ||c - t|| <= min(P * ||p - t||, C * ||t||)
    |c_i - t_i| <= min(P * max|p - t|, 6 * C * max(|t_i|, rms(t)))

if that is more than above. P = 4: p is one order of many, and each chance. On input variants C = 2^-6, the
bound of gross errors; if p itself is further off than that, a candidate that errs no more than P times as
much is not judged there. On drawn inputs C = 1e-4 at most: a result that was rounded to 11 bits is off by
2^-11 / sqrt(3) * 0.72 = 2e-4. And C is at most half of the error of each program that computes one operator
of the reference from operands of 11 bits, or all, or begins with such inputs (`room`), where the tolerance
without p would refuse that program. For such a candidate stands there itself: its error is that program's,
give or take a few percent, and not half of it. So none that was refused passes. Sums in turn that err by more
than 1e-4 on drawn inputs (the 4e-4 above) are refused: nothing tells them from TF32.

A run with `--numerics tf32` accepts for float32 what TF32 products give, N = 2^-9: five times the 4e-4 above.
The same numbers name a result's error class: `fp32-equivalent` within the float32 floor, `tf32-class` within
2^-9, `half-class` within 2^-6 (one bfloat16 product has sqrt(2) * 2^-8 / sqrt(3) = 3e-3, five times that),
`worse` beyond. The first N in this order that holds for the norm, and 6 N for every element, gives the class.

Noise. Where terms cancel, rounding is all that is left of an output: the mean of a group norm is 1e-17 in t,
1e-8 in r, and another 1e-8 in every c. Neither ||t|| nor r is a scale there. So where r is UNBELIEVABLE far
from t, or t says nothing of rounding (float64, zeros), the native reference runs NOISE_RUNS times more, with
every input and weight moved by one rounding. With d_i the most that this moves element i, and no less than it
moves half of all elements, the output is noise if

    8 ||d|| >= ||t||   and   |r_i - t_i| <= 6 d_i,  or within N where 6 N max(|t_i|, rms(t)) is more than d_i

and c is held to the second. M ||r - t|| is left out, as one number may be near its truth by luck; the largest
of eight moves is so small that another number of its kind is refused only twice in a million. A float32
candidate that errs more may do so by P max|p - t| where an element is noise: one running sum of 5e5
normalised terms leaves 1e-6 of their mean. No C bounds that, since nothing tells TF32 from float32 in noise;
but 1e-3 is refused. Zeros pass: they are the exact result. A twin that is far for another reason (a state,
draws of its own) is not believed, and r is the truth.

Norms and rms are relative to the output itself, so small outputs (a softmax over 65,536 elements) are
judged as strictly as large ones: zeros have a relative error of 1. Only where the truth is nothing but zeros
is there no size to be relative to (a SiLU far below zero, of which a kernel that keeps its exponent in range
leaves 1e-28): there the rms counts as VANISHING. Integers and booleans are equal or
wrong. NaN and infinities must stand where the truth has them, with the same sign.
"""

from __future__ import annotations

import torch

from kernelproof.hashing import sha256_json
from kernelproof.types import ErrorClass, ErrorStatistics
from kernelproof.verifier.contestant.encoding import dtype_name

REFERENCE_MULTIPLE, NARROW_MULTIPLE = 8.0, 4.0
ELEMENT_MULTIPLE = 6.0
PLAIN_MULTIPLE = 4.0
NORMWISE_ROUNDOFFS = 64.0
"""The error of one element where few are large, in unit roundoffs of the result's norm."""
PLAIN_CEILING = 1e-4
"""On drawn inputs plain arithmetic excuses no more: half of what a result rounded to 11 bits is off by."""
COARSE_DISTANCE = 2.0
"""A program with coarse operands is so many times further off than all that plain arithmetic excuses."""
COARSE_STEPS = 64
"""Operators of a reference that are tried with coarse operands; one with more gets no room."""
UNBELIEVABLE = 1000.0
"""A float64 twin this many floors away from the native result (5 % for float32) is not its twin, unless both
are rounding noise."""
NOISE_RUNS = 8
"""Runs of the native reference with inputs and weights that are moved by a rounding."""
COARSE_SHARE, ROUNDINGS = 0.25, 8
"""What a program may be off by behind float32, where less than N: see `precision`."""
VANISHING = 2.0**-32
"""Stands for the root mean square of a truth that is zero everywhere: one element may be 7e-14 in float32."""
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


def policy_sha256() -> str:
    """Hash of the policy's numbers, stored with every verification."""
    floors = {dtype_name(dtype): floor for dtype, floor in NORM_FLOOR.items()}
    classes = [TF32_FLOOR, HALF_FLOOR]
    multiples = [REFERENCE_MULTIPLE, NARROW_MULTIPLE, ELEMENT_MULTIPLE, PLAIN_MULTIPLE, PLAIN_CEILING]
    coarse = [COARSE_DISTANCE, COARSE_STEPS, COARSE_SHARE, ROUNDINGS]
    others = [UNBELIEVABLE, NOISE_RUNS, VANISHING, COARSE_FLOOR, NORMWISE_ROUNDOFFS]
    return sha256_json([*multiples, *others, floors, classes, coarse])


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


def few_large_slack(dtype: torch.dtype) -> float:
    """What one element may be off by where few are large, as a share of the result's norm: 0 for dtypes of
    fewer than four bytes, whose elements are off by more than that for their own rounding."""
    if not dtype.is_floating_point or dtype.itemsize < 4:
        return 0.0
    return NORMWISE_ROUNDOFFS * torch.finfo(dtype).eps / 2


def plain_ceiling(*, drawn: bool) -> float:
    """The largest floor that plain arithmetic explains behind float32 (see above)."""
    return PLAIN_CEILING if drawn else HALF_FLOOR


def timed_floor(
    dtype: torch.dtype, reference_relative_norm: float, numerics: str = "fp32", fitting: float | None = None
) -> float:
    """The floor for outputs of timed calls, which are compared with the native result, not with the truth.

    Both may be off by what a trial allows, so twice that: `reference_relative_norm` is the native
    reference's own largest error in the trials. `fitting`: the bound in place of the dtype's floor.
    """
    own = reference_multiple(dtype) * reference_relative_norm
    return 2 * max(norm_floor(dtype, numerics) if fitting is None else fitting, own)


def near_floor(dtype: torch.dtype, reference_relative_norm: float, numerics: str = "fp32") -> float:
    """How near to the native result an output of a timed call is right in norm, whatever the truth is.

    For narrow outputs by the triangle inequality: the native reference's own error is left out, twice, since
    in another draw it may be more than in the trials. Others have the room of `timed_floor`.
    """
    if dtype.itemsize > 2:
        return timed_floor(dtype, reference_relative_norm, numerics)
    return surely_right_floor(dtype, reference_relative_norm, numerics)


def surely_right_floor(dtype: torch.dtype, reference_relative_norm: float, numerics: str = "fp32") -> float:
    """How near to the native result an output is right in a trial, by the triangle inequality."""
    return timed_floor(dtype, reference_relative_norm, numerics) / 2 - 2 * reference_relative_norm


def error_class(error: ErrorStatistics, numerics: str = "fp32") -> ErrorClass | None:
    """What arithmetic this output could come from; None where that says nothing (other dtypes).

    An output that passes against the native reference's own error is equivalent to float32, unless that
    reference was allowed TF32.
    """
    if error.dtype != "float32":
        return None
    if numerics == "fp32" and error.wrong == 0:
        return ErrorClass.FP32_EQUIVALENT
    odd = error.first_bad is not None and (error.expected is None or error.got is None)
    if odd or error.nan:
        return ErrorClass.WORSE
    for name, floor in CLASS_FLOORS:
        if error.relative_norm <= floor and error.max_rel <= ELEMENT_MULTIPLE * floor:
            return name
    return ErrorClass.WORSE
