"""How far one output is from another: the statistics that the tolerance judges, element by element."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from kernelproof.types import ErrorStatistics
from kernelproof.verifier.contestant.encoding import dtype_name
from kernelproof.verifier.referee.correctness.tolerance import (
    ELEMENT_MULTIPLE,
    UNBELIEVABLE,
    VANISHING,
    norm_floor,
    reference_multiple,
)

SURE_SHARE = 0.9
"""A share of the floor. A look in float32 errs by far less than the rest."""
_SQUARED_LEAST = 1e4
"""Errors are known by their squares down to so many times the square root of the least number."""
CHUNK, CPU_CHUNK = 1 << 25, 1 << 18
"""Elements widened to float64 at a time: comparing needs at most about 1 GiB beside the tensors. So few on a
CPU, where caches then hold what is computed: it takes half as long."""
_MOST = float(torch.finfo(torch.float64).max)
"""Stands for a ratio too large for a float64: records hold finite numbers only."""


@dataclass(frozen=True)
class ExtraTolerance:
    """How far off the truth one output may be since the plainest honest arithmetic is, too."""

    norm: float
    """The error in norm."""
    largest: float
    """One element."""
    floor: float
    """But never by more than this: relative in norm, ELEMENT_MULTIPLE times as much for one element."""


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
    """The largest element of the native reference's error."""
    truth_norm: float
    """Norm of the truth's finite elements."""
    rms: float
    """Root mean square of the truth's finite elements."""
    all_finite: bool
    """Whether the truth is finite throughout."""
    slack: float = 0.0
    """One element may be off by this much, however small it is."""
    extra: ExtraTolerance | None = None
    """The error beyond the tolerance that honest arithmetic may have there, where that was computed."""
    noise: torch.Tensor | None = None
    """Of an output that is rounding noise (see `correctness.rounding`), flat, float64: how far rounding alone
    moves each element, 0 where that is within the tolerance. None of other outputs."""

    @property
    def has_truth(self) -> bool:
        """Whether it is more than the native result itself."""
        return self.exact is not self.native

    @property
    def multiple(self) -> float:
        """How many times the native reference's error is allowed: 0 where `noise` says what is."""
        return reference_multiple(self.native.dtype) if self.noise is None else 0.0

    @property
    def reference_relative_norm(self) -> float:
        """The native reference's relative error in norm."""
        return _ratio(self.reference_norm, self.truth_norm)


def yardstick(native: torch.Tensor, truth: torch.Tensor | None) -> Yardstick:
    """The values that outputs are compared with: `native` in the problem's dtype, `truth` its float64 twin
    or None.

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
        found = measured(flat, truth.reshape(-1), shape)
        if found.reference_relative_norm <= UNBELIEVABLE * norm_floor(flat.dtype):
            return found
    return measured(flat, flat, shape)


def measured(flat: torch.Tensor, exact: torch.Tensor, shape: torch.Size) -> Yardstick:
    """`flat` against `exact`, whatever that is: norms over the elements where `exact` is finite."""
    error_squared = truth_squared = largest = 0.0
    finite = 0
    for part in chunks(flat):
        sure = exact[part].double()
        squared, usable = squared_norm(sure), None
        if math.isfinite(squared):
            finite += sure.numel()
        else:
            usable = torch.isfinite(sure)
            finite += int(usable.sum())
            sure = sure.masked_fill(~usable, 0.0)
            squared = squared_norm(sure)
        truth_squared += squared
        if exact is not flat:
            error = flat[part].double() - sure  # not in place: float64 is not copied
            squared = squared_norm(error)
            if usable is not None or not math.isfinite(squared):
                error = error if usable is None else error.masked_fill_(~usable, 0.0)
                squared = squared_norm(error.nan_to_num_(0.0, 0.0, 0.0))
            error_squared += squared
            largest = max(largest, _largest(error))
    if truth_squared == 0.0:
        truth_squared = VANISHING**2 * max(finite, 1)
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


def chunks(flat: torch.Tensor) -> Iterator[slice]:
    """Where the chunks of a flat tensor lie."""
    step = CHUNK if flat.is_cuda else min(CHUNK, CPU_CHUNK)
    return (slice(start, start + step) for start in range(0, flat.numel(), step))


def squared_norm(values: torch.Tensor) -> float:
    """The sum of the squares, without a copy; not finite where an element is not."""
    return float(torch.dot(values, values))


def _largest(values: torch.Tensor) -> float:
    """The largest size of an element, without a copy."""
    return float(torch.stack(torch.aminmax(values)).abs().max())


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
    stick: Yardstick,
    candidate: torch.Tensor,
    *,
    trial: str,
    output: int,
    floor: float | None = None,
    moved: torch.Tensor | None = None,
) -> ErrorStatistics:
    """How far `candidate` is from the truth, and how many of its elements lie outside the tolerance.

    `candidate` has the native output's shape and dtype. `floor` replaces the dtype's norm floor (see
    `timed_floor`). `moved`, flat: how far rounding alone may move each element. Where that is beyond the
    element's bound, the bound is ELEMENT_MULTIPLE times as far, and the element is left out of the norm if it
    is within that. The yardstick's `noise` does the same.
    `wrong` is at least 1 whenever the output is not acceptable: where no single element is wrong but the
    whole is, in norm, it is 1 and `first_bad` is None.
    """
    if candidate.is_complex():
        candidate = torch.view_as_real(candidate.resolve_conj())
    mine = candidate.reshape(-1)
    if not stick.native.is_floating_point():
        return _compare_exactly(mine, stick, trial=trial, output=output)
    floor = norm_floor(stick.native.dtype) if floor is None else floor
    found = _Worst()
    for where in chunks(mine):
        part, sure = mine[where].double(), stick.exact[where].double()
        found.add(part, sure, where.start, stick, ELEMENT_MULTIPLE * floor, moved)
    error_norm = math.sqrt(found.error_squared)
    allowed = _allowed_norm(stick, floor)
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
        allowed_norm=_ratio(allowed, stick.truth_norm),
        allowed_abs=found.allowed,
        reference_abs=found.reference if stick.has_truth else None,
    )


def _allowed_norm(stick: Yardstick, floor: float) -> float:
    """How far the whole may be from the truth, in norm."""
    allowed = max(stick.multiple * stick.reference_norm, floor * stick.truth_norm)
    if stick.extra is not None:
        allowed = max(allowed, min(stick.extra.norm, stick.extra.floor * stick.truth_norm))
    return allowed


class Nearness:
    """How near an output is to the native result, from a look or two in float32. Each is made when it is
    first asked for, and serves for every floor."""

    def __init__(self, candidate: torch.Tensor, native: torch.Tensor) -> None:
        self._mine, self._sure = candidate, native

    def within(self, floor: float) -> bool:
        """Whether `compare_with(yardstick(native, None), candidate, floor=floor)` surely finds nothing wrong:
        in norm, and by the largest error beside the root mean square (rms), or where that is beyond an
        element's bound, beside each element's own size. False says nothing.
        """
        mine, sure, allowed = self._mine, self._sure, SURE_SHARE * floor
        if mine.shape != sure.shape or mine.dtype != sure.dtype:
            return False
        if not sure.is_floating_point():
            return torch.equal(mine, sure)
        if not sure.numel():
            return True
        known, error, largest = self._norms
        if not (math.isfinite(known) and error <= allowed * known):
            return False
        if largest == 0.0:
            return True
        if allowed * self._rms < _SQUARED_LEAST * math.sqrt(torch.finfo(self._wide).tiny):
            return False  # squares of errors may have vanished
        most = ELEMENT_MULTIPLE * allowed
        return largest <= most * self._rms or self._by_size <= most

    @functools.cached_property
    def _norms(self) -> tuple[float, float, float]:
        """Of the native result and of the error; the largest error. A device is waited for once."""
        norm = torch.linalg.vector_norm
        looked = [(norm(known), norm(error), *torch.aminmax(error)) for known, error in self._parts()]
        found = torch.stack(list(itertools.chain(*looked))).cpu().double().view(-1, 4)
        return float(found[:, 0].norm()), float(found[:, 1].norm()), float(found[:, 2:].abs().max())

    @property
    def _rms(self) -> float:
        return self._norms[0] / math.sqrt(self._sure.numel())

    @functools.cached_property
    def _by_size(self) -> float:
        """The largest error in proportion to the element's own size, or the rms if that is more."""
        parts, rms = self._parts(), self._rms
        looked = [torch.aminmax(error.div_(known.abs().clamp_(min=rms))) for known, error in parts]
        return float(torch.stack(list(itertools.chain(*looked))).cpu().abs().max())

    @property
    def _wide(self) -> torch.dtype:
        """The look computes in this dtype."""
        return self._sure.dtype if self._sure.element_size() >= 4 else torch.float32

    def _parts(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The native result and the error, a chunk at a time."""
        mine, sure, wide = self._mine.reshape(-1), self._sure.reshape(-1), self._wide
        for part in chunks(sure):
            known = sure[part].to(wide)
            yield known, mine[part].to(wide) - known


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
    allowed: float | None = None
    """At the first bad element: the largest error that would have been accepted."""
    reference: float | None = None
    """And the native reference's own error there."""

    def add(
        self,
        part: torch.Tensor,
        sure: torch.Tensor,
        start: int,
        stick: Yardstick,
        relative: float,
        moved: torch.Tensor | None,
    ) -> None:
        """Takes one chunk: candidate and truth in float64, flat; `start` is its first element's index."""
        error = (part - sure).abs_()
        squared = squared_norm(error)
        scale = sure.abs().clamp_(min=stick.rms)
        if stick.all_finite and math.isfinite(squared) and stick.noise is moved is None:
            most = float((error / scale).max())
            if most <= relative:  # every bound is at least that
                self.max_rel, self.max_abs = max(self.max_rel, most), max(self.max_abs, float(error.max()))
                self.error_squared += squared
                return
        bound = (scale * relative).clamp_(min=max(stick.multiple * stick.reference_max, stick.slack))
        if stick.extra is not None:
            widest = (scale * (ELEMENT_MULTIPLE * stick.extra.floor)).clamp_(max=stick.extra.largest)
            bound = torch.maximum(bound, widest)
        loose = None
        for each in (stick.noise, moved):
            if each is not None:
                far = each[start : start + len(part)]
                loose = far > bound if loose is None else loose | (far > bound)
                bound = torch.where(far > bound, ELEMENT_MULTIPLE * far, bound)
        if stick.all_finite and math.isfinite(squared):
            bad = error > bound
        else:
            bad = self._careful(part, sure, error, bound)
            squared = squared_norm(error.nan_to_num_(0.0, 0.0, 0.0))
        self.max_abs = max(self.max_abs, float(error.max()))
        if loose is not None:
            squared = squared_norm(error.masked_fill_(loose & ~bad, 0.0))
        self.error_squared += squared
        self.wrong += int(bad.sum())
        self.max_rel = max(self.max_rel, float(error.div_(scale).nan_to_num_(0.0, 0.0, 0.0).max()))
        if self.first is None and bool(bad.any()):
            place = int(bad.nonzero()[0])
            self.first = start + place
            self.expected, self.got = _json_float(sure[place]), _json_float(part[place])
            if self.expected is not None:
                self.allowed = _json_float(bound[place])
                native = stick.native[start + place].double()
                self.reference = _json_float((native - sure[place]).abs())

    def _careful(
        self,
        part: torch.Tensor,
        sure: torch.Tensor,
        error: torch.Tensor,
        bound: torch.Tensor,
    ) -> torch.Tensor:
        """Which elements are bad where NaN or infinities are about: they must stand where the truth's do."""
        self.nan += int((part.isnan() & ~sure.isnan()).sum())
        within = error <= bound
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
