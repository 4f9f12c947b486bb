"""What a candidate's own kernels do in place of libraries: what these do for it, and for the reference.

The reference's call is traced as the candidate's is. Work that operators of torch do for the reference, and
no library does for the candidate, is replaced. The rule, and what it cannot see: docs/rationale/kernels.md.

Operators have kinds of work (`kinds_of`), so that one can be seen to stand in for another: `gelu` is a
function and arithmetic: so is `x * 0.5 * (1 + erf(x * c))`. A sum of two partial products is arithmetic
alone, and no GELU.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from kernelproof.types import Launch, Origin


class Kind(StrEnum):
    """A kind of work. None of them can be composed of the others, but for sums, which products can do,
    comparisons, and such orders as a maximum is."""

    PRODUCT = "products"
    SUM = "sums"
    ARITHMETIC = "arithmetic"
    FUNCTION = "functions"
    """Curves that no sum, product or quotient is: `exp`, a root."""
    COMPARISON = "comparisons"
    """`relu`, a maximum, rounding. A steep curve compares too."""
    ORDER = "orders"
    REARRANGING = "rearranging"
    OTHER = "other"
    """Of operators that no kind is known of, and kernels of libraries that no operator launched."""


class Kinds(NamedTuple):
    """Of one operator: how often it does each kind of work on an element."""

    needs: Counter[Kind]
    """The shortest way to do its work with other operators: a layer norm is a variance, a difference and a
    product."""
    does: Counter[Kind]
    """Its use for other operators' work."""


def _named_kinds(needs: str, more: str = "") -> Kinds:
    first, further = (Counter(Kind[word] for word in words.split()) for words in (needs, more))
    does = first | further
    return Kinds(first, does | Counter({Kind.COMPARISON: does[Kind.FUNCTION] + does[Kind.ORDER]}))


_PRODUCTS = (
    r"mm|bmm|addmm|addbmm|baddbmm|matmul|linear|mv|addmv|inner|addr|outer|ger|tensordot|einsum|bilinear"
    r"|chain_matmul|scaled_mm|grouped_mm|\w*_linear|linalg_matmul|linalg_multi_dot"
)
_CONVOLUTIONS = r"\w*conv(?:olution)?(?:_?(?:transpose|tbc))?[123]?d?\w*"
_WITH_FUNCTION = r"addmm_activation|\w*conv\w*(?:relu|pointwise)\w*|\w*linear_(?:pointwise|relu)\w*"
PRODUCT_NAMES, CONVOLUTION_NAMES = (
    re.compile(f"(?!(?:{_WITH_FUNCTION})$)(?:{names})") for names in (_PRODUCTS, _CONVOLUTIONS)
)
"""Names of operators that multiply matrices, and of those that convolve, and do nothing else."""

_TABLE = (
    (_WITH_FUNCTION, _named_kinds("PRODUCT COMPARISON", "SUM ARITHMETIC FUNCTION")),
    (f"{_PRODUCTS}|{_CONVOLUTIONS}", _named_kinds("PRODUCT", "SUM")),
    ("v?dot|linalg_vecdot", _named_kinds("PRODUCT", "SUM ARITHMETIC ARITHMETIC")),
    ("dist", _named_kinds("SUM ARITHMETIC ARITHMETIC", "FUNCTION")),
    (r"\w*scaled_dot_product\w*|\w*(?:flash|efficient)_attention\w*", _named_kinds("PRODUCT")),
    (
        r"r?sub|subtract|add|mul|multiply|div|(?:true_)?divide|neg|negative|foreach_(?:add|sub|mul|div|neg)",
        _named_kinds("ARITHMETIC"),
    ),
    ("addcmul|addcdiv|lerp|foreach_(?:addcmul|addcdiv)", _named_kinds("ARITHMETIC", "ARITHMETIC ARITHMETIC")),
    ("pow|square|float_power|reciprocal", _named_kinds("ARITHMETIC", "FUNCTION")),
    (r"var|std|var_mean|std_mean|batch_norm_(?:gather_)?stats\w*", _named_kinds("SUM", "ARITHMETIC")),
    ("abs|absolute", _named_kinds("COMPARISON", "ARITHMETIC")),
    (
        r"norm|linalg_vector_norm|linalg_norm|linalg_matrix_norm|frobenius_norm",
        _named_kinds("SUM ARITHMETIC", "FUNCTION"),
    ),
    (
        r"(?:nan)?(?:sum|mean)|prod|cumsum|cumprod|trace|(?:adaptive_)?avg_pool[123]d|adaptive_avg_pool"
        r"|count_nonzero|bincount|histc|index_add|scatter_add|sum_to_size|l1_loss|kl_div|nll_loss\w*",
        _named_kinds("SUM"),
    ),
    ("mse_loss|cosine_similarity|cosine_embedding_loss", _named_kinds("SUM ARITHMETIC ARITHMETIC")),
    (
        r"smooth_l1_loss|huber_loss|hinge_embedding_loss|triplet_margin_loss|margin_ranking_loss|cdist\w*"
        "|pairwise_distance|pdist",
        _named_kinds("SUM COMPARISON", "FUNCTION"),
    ),
    (
        r"logsumexp|logcumsumexp|cross_entropy_loss|binary_cross_entropy\w*",
        _named_kinds("SUM FUNCTION"),
    ),
    (r"(?:safe_|masked_)?(?:log_)?softmax\w*|softmin", _named_kinds("SUM FUNCTION ARITHMETIC")),
    (
        r"\w*batch_norm\w*",
        _named_kinds("ARITHMETIC ARITHMETIC", "SUM ARITHMETIC ARITHMETIC ARITHMETIC FUNCTION"),
    ),
    (r"\w*rms_norm\w*", _named_kinds("SUM ARITHMETIC ARITHMETIC", "FUNCTION")),
    (
        r"\w*(?:layer|group|instance|response)_norm\w*",
        _named_kinds("SUM ARITHMETIC ARITHMETIC ARITHMETIC", "FUNCTION"),
    ),
    ("gelu|silu|mish|glu|tanhshrink|xlogy", _named_kinds("FUNCTION ARITHMETIC")),
    ("hardswish|softshrink|softsign", _named_kinds("COMPARISON ARITHMETIC")),
    (
        r"elu|selu|celu|sigmoid|log_sigmoid"
        r"|softplus|tanh|sinh|cosh|a?(?:sin|cos|tan)h?|arc\w+|atan2|exp|exp2|expm1|log|log2|log10|log1p|sqrt|rsqrt"
        r"|erf|erfc|erfinv|l?gamma|lgamma|digamma|i0|sinc|special_\w+|hypot|logaddexp2?|logit",
        _named_kinds("FUNCTION"),
    ),
    (
        r"relu6?|leaky_relu|prelu|rrelu|threshold|hardtanh|hardsigmoid|hardshrink|sign|sgn|signbit|floor|ceil"
        r"|round|trunc|fix|frac|fmod|remainder|floor_divide|clamp(?:_min|_max)?|clip|heaviside|copysign"
        r"|where|masked_fill|eq|ne|lt|le|gt|ge|not_equal|less\w*|greater\w*|is(?:nan|inf|finite)"
        r"|logical_\w+|bitwise_\w+|nan_to_num|maximum|minimum|fmax|fmin|a?max|a?min|aminmax|arg(?:max|min)"
        r"|cummax|cummin|any|all|(?:adaptive_|fractional_)?max_pool[123]d\w*",
        _named_kinds("COMPARISON"),
    ),
    (r"embedding_bag\w*", _named_kinds("SUM REARRANGING")),
    (r"\w*grid_sampler\w*", _named_kinds("ARITHMETIC REARRANGING", "SUM")),
    (
        r"\w+_window|rand|rand(?:n|int|perm)|normal|eye|linspace|logspace|tri[lu]_indices",
        _named_kinds("OTHER"),
    ),
    ("topk|sort|msort|argsort|kthvalue|(?:nan)?median|mode|searchsorted|bucketize", _named_kinds("ORDER")),
    (
        r"clone|copy|to_copy|repeat|cat|concat\w*|[hvd]?stack|gather|take\w*|index|index_select|index_put\w*"
        r"|index_copy|index_fill|scatter|masked_select|masked_scatter|embedding|\w*pad(?:_nd|[123]d)?|roll|flip"
        r"|fliplr|flipud|rot90|tril|triu|diag\w*|repeat_interleave|tile|im2col|col2im|pixel_(?:un)?shuffle"
        r"|channel_shuffle|one_hot|nonzero|\w+_(?:scatter|copy)|block_diag|kron",
        _named_kinds("REARRANGING"),
    ),
)
_PATTERNS = tuple((re.compile(pattern), kinds) for pattern, kinds in _TABLE)
_UNKNOWN = Kinds(Counter((Kind.OTHER,)), Counter(dict.fromkeys(Kind, 3)))


@lru_cache(maxsize=4096)
def kinds_of(name: str) -> Kinds:
    """What work an operator does, by its plain name (`layer_norm`, `addmm`): unknown names may do any."""
    return next((kinds for pattern, kinds in _PATTERNS if pattern.fullmatch(name)), _UNKNOWN)


COMPENSATED_SHARE = 0.9
"""Other work of libraries makes up for what is missing where it is of the same kind, on this share of the
elements; where no elements are known, in this share of the time."""

AS_LONG = 0.5
"""A kernel of the same name that takes at least this share of the time does the same."""

PRODUCT, CONVOLUTION, MOVE = "matrix products", "convolutions", "copies"
"""Operators that are one for the comparison, however they are spelled."""

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
    """Of the tensors that it was given, in all calls; of those of one shape in a call, of one,
    but for products."""


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
    kinds: tuple[Kind, ...]
    """Kinds of the reference's work of which libraries do less in the candidate, all in all."""
    by_fused: tuple[Kind, ...]
    """Those among them of which no fused operator of a library does as much either: one `gelu` in place of
    `pow` and `tanh` passes over the elements once."""
    libraries_ms: float
    """Of libraries in the candidate, outside of products."""
    still: tuple[str, ...]
    """What libraries do as much of as for the reference."""
    gone: tuple[str, ...]
    """What they do less of."""

    @property
    def nothing(self) -> bool:
        """Whether libraries do all that they do for the reference."""
        return not self.gone


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
        missing = dict.fromkeys(missing, Spent())
    more = {name: _more(spent, theirs.get(name)) for name, spent in others.items() if name != MOVE}
    products = (PRODUCT, CONVOLUTION)
    outside = sum(spent.ms for name, spent in theirs.items() if name not in products)
    saved, saved_outside = (
        _sum(spent for name, spent in missing.items() if name not in left_out).ms
        - _sum(spent for name, spent in more.items() if name not in left_out).ms
        for left_out in ((), products)
    )
    return Replaced(
        share=_share(saved, total),
        outside_products=_share(saved_outside, outside) if outside > 0 else None,
        kinds=_kinds_replaced(missing, more),
        by_fused=_kinds_replaced(
            missing,
            more | {MOVE: _more(others.get(MOVE, Spent()), theirs.get(MOVE))},
            unseen_ms=_unseen(reference, candidate),
        ),
        libraries_ms=sum(spent.ms for name, spent in others.items() if name not in products),
        still=tuple(name for name, spent in missing.items() if spent.ms <= 0),
        gone=tuple(name for name, spent in missing.items() if spent.ms > 0),
    )


def _kinds_replaced(
    missing: Mapping[str, Spent], more: Mapping[str, Spent], *, unseen_ms: float | None = None
) -> tuple[Kind, ...]:
    """Kinds of what is missing that other work of libraries does not make up for. With `unseen_ms` fused work
    makes up for it too: all calls that are missing count with the elements of the largest. Work of unknown
    kind has to take so many milliseconds as half of the fastest of them. Any work on as many elements makes
    up for that of unknown operators.

    A curve or a sort compares, too. But where it stands for another, it stands for no comparison besides."""
    lacks = {}
    for kind in Kind:
        needed = _needed(missing, kind)
        lacking = [missing[name] for name in needed if missing[name].ms > 0]
        if kind is Kind.COMPARISON and lacking and unseen_ms is None:
            needed = _needed(missing, kind, Kind.FUNCTION, Kind.ORDER)
        lacks[kind] = lack = _sum(_times(missing[name], times) for name, times in needed.items())
        if unseen_ms is not None and lacking:
            most = max(_each(spent).elements for spent in lacking)
            fastest = min(
                _each(spent).ms for spent in lacking if _each(spent).elements >= COMPENSATED_SHARE * most
            )
            seen = kind is Kind.PRODUCT or unseen_ms < AS_LONG * fastest
            known = lack._replace(elements=most) if most else lack._replace(ms=AS_LONG * lack.ms)
            lacks[kind] = known if seen else Spent()
    fused = unseen_ms is not None
    return tuple(k for k, lack in lacks.items() if lack.ms > 0 and not _compensated(k, lack, more, fused))


def _needed(missing: Iterable[str], *kinds: Kind) -> dict[str, int]:
    """The operators that do work of these kinds, and how often."""
    return {name: times for name in missing if (times := sum(_kinds(name).needs[kind] for kind in kinds))}


def _times(spent: Spent, times: int) -> Spent:
    """With each element counted so often."""
    return spent._replace(elements=times * spent.elements)


def _each(spent: Spent) -> Spent:
    calls = max(spent.calls, 1)
    return Spent(1, spent.ms / calls, spent.elements // calls)


def _unseen(reference: Works, candidate: Works) -> float:
    """Milliseconds of the candidate's kernels of libraries of which nothing tells what they do: no operator,
    no name, and the reference does not run them."""
    return sum(
        spent.ms
        for name, spent in candidate.unclaimed.items()
        if name not in reference.kernels and _class_of_kernel(name) == name
    )


def _compensated(kind: Kind, lack: Spent, more: Mapping[str, Spent], fused: bool) -> bool:
    """Whether libraries do as much of this kind of work elsewhere. Time decides where the work is of unknown
    kind or size (of `cat` no sizes are recorded), and for products: one of them may be arranged as another,
    or as a sum of terms. `fused`: as in `_kinds_replaced`."""
    kinds = {kind, Kind.COMPARISON} if fused and kind is Kind.ORDER else {kind}  # a maximum for a `topk`
    does = {name: max(_kinds(name).does[each] for each in kinds) for name in more}
    able = {name: _times(more[name], times) for name, times in does.items() if times}
    by_time: Mapping[str, Spent] = {n: s for n, s in able.items() if not (s.elements and lack.elements)}
    if kind in (Kind.OTHER, Kind.PRODUCT):
        as_many = fused and _sum(more.values()).elements >= COMPENSATED_SHARE * lack.elements
        by_time = more if kind is Kind.PRODUCT or as_many else able
    if _sum(by_time.values()).ms >= COMPENSATED_SHARE * lack.ms:
        return True
    return 0 < COMPENSATED_SHARE * lack.elements <= _sum(able.values()).elements


def _kinds(name: str) -> Kinds:
    return kinds_of({PRODUCT: "mm", CONVOLUTION: "convolution", MOVE: "copy"}.get(name, name))


def _by_class(lines: Iterable[Operator]) -> dict[str, Spent]:
    found: dict[str, Spent] = {}
    for kind, name, count, ms, elements in lines:
        base = name.partition(".")[2].removesuffix("_out").strip("_").removeprefix("native_")
        if kind == "operator" or (kind == "copy" and base in _MOVES):
            _add(found, _class(base), Spent(count, ms, elements))
    return found


def unrecorded(recorded: Iterable[Operator], dispatched: Iterable[Operator]) -> list[Operator]:
    """Operators that were dispatched, and of whose class not one call is in the record of another call."""
    known = _by_class(recorded).keys()
    return [line for line in dispatched if not known & _by_class([line]).keys()]


def _missing(spent: Spent, candidate: Spent | None) -> Spent:
    """What libraries do of this for the reference, and not in the candidate.

    The tensors that they get show how much they do: a last sum over a few partial ones is not the
    reference's sum. Three products that became a larger one are less by that, so there the time counts too.
    A product without the bias is a whole one.
    """
    if candidate is None:
        return spent
    done = candidate.elements / spent.elements if spent.elements else candidate.calls / spent.calls
    if candidate.calls < spent.calls:
        if spent.ms > 0:
            done = max(done, candidate.ms / spent.ms)
    elif done >= COMPENSATED_SHARE:
        return Spent()
    left = 1 - min(done, 1.0)
    return Spent(spent.calls, spent.ms * left, round(spent.elements * left))


def _more(spent: Spent, expected: Spent | None) -> Spent:
    """What libraries do in the candidate beyond their work for the reference."""
    if expected is None:
        return spent
    calls, ms, elements = (max(mine - other, 0) for mine, other in zip(spent, expected, strict=True))
    return Spent(int(calls), ms, int(elements)) if elements else Spent()


def _same_kernels(reference: Works, candidate: Works) -> bool:
    """Whether all the reference's kernels run in the candidate, as often: from a graph, say."""
    return bool(reference.kernels) and all(
        (found := candidate.unclaimed.get(name, Spent())).calls >= spent.calls
        and found.ms >= AS_LONG * spent.ms
        for name, spent in reference.kernels.items()
    )


def _class(base: str) -> str:
    if PRODUCT_NAMES.fullmatch(base):
        return PRODUCT
    if CONVOLUTION_NAMES.fullmatch(base):
        return CONVOLUTION
    return MOVE if base in _MOVES else base


def _class_of_kernel(name: str) -> str:
    if _CONVOLUTION_KERNELS.search(name):
        return CONVOLUTION
    return PRODUCT if _PRODUCT_KERNELS.search(name) else name


def _share(part: float, whole: float) -> float:
    return min(max(part / whole, 0.0), 1.0)


def _add(totals: dict[str, Spent], name: str, spent: Spent) -> None:
    totals[name] = _sum((totals.get(name, Spent()), spent))


def _sum(all_spent: Iterable[Spent]) -> Spent:
    columns = list(zip(*all_spent, strict=True))
    return Spent(*map(sum, columns)) if columns else Spent()
