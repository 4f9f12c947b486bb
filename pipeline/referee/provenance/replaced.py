"""What a candidate's own kernels do in place of libraries: what these do for it, and for the reference.

The reference's call is traced as the candidate's is. Work that operators of torch do for the reference, and
no library does for the candidate, is replaced. The rule, and what it cannot see: docs/rationale/kernels.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from kernelproof.types import Launch, Origin

MADE_UP_FOR = 0.95
"""Other work of libraries that takes this share of the time of what is missing makes up for it."""

AS_LONG = 0.5
"""A kernel of the same name that takes at least this share of the time does the same."""

PRODUCT, CONVOLUTION, MOVE = "matrix products", "convolutions", "copies"
"""Operators that are one for the comparison, however they are spelled."""

_PRODUCTS = re.compile(
    r"mm|bmm|addmm|addbmm|baddbmm|matmul|linear|mv|addmv|dot|vdot|inner|addr|outer|ger|tensordot|einsum|bilinear"
    r"|chain_matmul|scaled_mm|grouped_mm|\w*_linear|linalg_matmul|linalg_vecdot|linalg_multi_dot|addmm_activation"
)
_CONVOLUTIONS = re.compile(r"\w*conv(?:olution)?(?:_?(?:transpose|tbc))?[123]?d?\w*")
_MOVES = frozenset({"clone", "copy", "to_copy", "repeat"})
_PRODUCT_KERNELS = re.compile(r"gemm|gemv|nvjet|cutlass|\bdot_kernel|Kernel2\b|matmul", re.IGNORECASE)
_CONVOLUTION_KERNELS = re.compile(r"fprop|dgrad|wgrad|convol|conv\dd|conv_depthwise|winograd", re.IGNORECASE)


class Operator(NamedTuple):
    """One line of a report on operators of torch."""

    kind: str
    name: str
    calls: int
    ms: float
    elements: int
    """Of the tensors that it was given, in all calls."""


class Spent(NamedTuple):
    """How often something ran, for how long together, and on how much."""

    calls: int = 0
    ms: float = 0.0
    elements: int = 0


class Works(NamedTuple):
    """What libraries did in one traced call."""

    on_host: dict[str, Spent]
    """By operator of torch, or class of them, with the host's time."""
    on_device: dict[str, Spent] | None
    """The same with the time of the kernels that they launched; None where no device was traced."""
    kernels: dict[str, Spent]
    """By the kernels' names, on a device."""
    unclaimed: dict[str, Spent]
    """Kernels that no operator of torch launched: by way of a library, or of a graph."""


class Replaced(NamedTuple):
    """How much of the reference's work libraries do not do in the candidate."""

    share: float
    """Of all the time that the reference spends in operators."""
    outside_products: float | None
    """Of that outside of matrix products and convolutions; None where it spends none there."""
    missing: float
    """Milliseconds of the reference's in what libraries do not do as much of in the candidate."""
    made_up: float
    """Milliseconds that libraries spend in the candidate on what they do not do for the reference."""
    still: tuple[str, ...]
    """What libraries do as much of as for the reference."""
    gone: tuple[str, ...]
    """What they do less of."""

    @property
    def nothing(self) -> bool:
        """Whether libraries do all that they do for the reference."""
        return not self.gone

    @property
    def nothing_saved(self) -> bool:
        """Whether other work of libraries takes as long as what is missing."""
        return self.made_up >= MADE_UP_FOR * self.missing


def works(
    on_host: Iterable[Operator],
    on_device: Iterable[Operator] | None,
    launches: Iterable[tuple[Launch, bool]],
) -> Works:
    """What libraries did, of the lines of a report. `launches`: kernels, and whether torch launched them."""
    kernels: dict[str, Spent] = {}
    unclaimed: dict[str, Spent] = {}
    for launch, by_torch in launches:
        if launch.origin in (Origin.LIBRARY, Origin.INDUCTOR, Origin.UNKNOWN):
            spent = Spent(launch.count, launch.ms or 0.0)
            _add(kernels, launch.name, spent)
            if not by_torch:
                _add(unclaimed, launch.name, spent)
    device = None if on_device is None else _by_class(on_device)
    return Works(_by_class(on_host), device, kernels, unclaimed)


def replaced(reference: Works, candidate: Works) -> Replaced | None:
    """The comparison; None where the reference does nothing that could be replaced."""
    if reference.on_device is not None and candidate.on_device is not None:
        theirs, others = reference.on_device, dict(candidate.on_device)
    else:
        theirs, others = reference.on_host, dict(candidate.on_host)
    total = sum(spent.ms for spent in theirs.values())
    if total <= 0:
        return None
    for name, spent in candidate.unclaimed.items():
        kind = _class_of_kernel(name)
        one = theirs.get(kind, Spent())  # of the size of the reference's, for all that is known
        each = one.elements // one.calls if one.calls else 0
        _add(others, kind, spent._replace(elements=each * spent.calls))
    missing = {name: _missing(spent, others.get(name)) for name, spent in theirs.items()}
    if _same_kernels(reference, candidate):
        missing = dict.fromkeys(missing, 0.0)
    more = {name: _more(spent, theirs.get(name)) for name, spent in others.items() if name != MOVE}
    products = {PRODUCT, CONVOLUTION}
    outside = sum(spent.ms for name, spent in theirs.items() if name not in products)
    saved_outside = sum(ms for name, ms in missing.items() if name not in products) - sum(
        ms for name, ms in more.items() if name not in products
    )
    return Replaced(
        share=_share(sum(missing.values()) - sum(more.values()), total),
        outside_products=_share(saved_outside, outside) if outside > 0 else None,
        missing=sum(missing.values()),
        made_up=sum(more.values()),
        still=tuple(name for name, ms in missing.items() if ms <= 0),
        gone=tuple(name for name, ms in missing.items() if ms > 0),
    )


def _by_class(lines: Iterable[Operator]) -> dict[str, Spent]:
    found: dict[str, Spent] = {}
    for kind, name, count, ms, elements in lines:
        base = name.partition(".")[2].removesuffix("_out").strip("_").removeprefix("native_")
        if kind == "operator" or (kind == "copy" and base in _MOVES):
            _add(found, _class(base), Spent(count, ms, elements))
    return found


def _missing(spent: Spent, found: Spent | None) -> float:
    """Milliseconds of the reference's for what libraries do not do in the candidate.

    The tensors that they get show how much they do: a last sum over a few partial ones is not the
    reference's sum. Three products that became a larger one are less by that, so there the time counts too.
    """
    if found is None:
        return spent.ms
    done = found.elements / spent.elements if spent.elements else found.calls / spent.calls
    if found.calls < spent.calls and spent.ms > 0:
        done = max(done, found.ms / spent.ms)
    return spent.ms * (1 - min(done, 1.0))


def _more(spent: Spent, expected: Spent | None) -> float:
    """Milliseconds that libraries spend in the candidate beyond those for the reference."""
    if expected is None:
        return spent.ms
    return max(spent.ms - expected.ms, 0.0) if spent.elements > expected.elements else 0.0


def _same_kernels(reference: Works, candidate: Works) -> bool:
    """Whether all the reference's kernels run in the candidate, as often: from a graph, say."""
    return bool(reference.kernels) and all(
        (found := candidate.unclaimed.get(name, Spent())).calls >= spent.calls
        and found.ms >= AS_LONG * spent.ms
        for name, spent in reference.kernels.items()
    )


def _class(base: str) -> str:
    if _PRODUCTS.fullmatch(base):
        return PRODUCT
    if _CONVOLUTIONS.fullmatch(base):
        return CONVOLUTION
    return MOVE if base in _MOVES else base


def _class_of_kernel(name: str) -> str:
    if _CONVOLUTION_KERNELS.search(name):
        return CONVOLUTION
    return PRODUCT if _PRODUCT_KERNELS.search(name) else name


def _share(part: float, whole: float) -> float:
    return min(max(part / whole, 0.0), 1.0)


def _add(totals: dict[str, Spent], name: str, spent: Spent) -> None:
    before = totals.get(name, Spent())
    totals[name] = Spent(before.calls + spent.calls, before.ms + spent.ms, before.elements + spent.elements)
