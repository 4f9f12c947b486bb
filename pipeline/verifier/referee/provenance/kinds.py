"""Kinds of work that operators of torch do, so that one operator can be seen to stand in for another.

`gelu` is a function and arithmetic: so is `x * 0.5 * (1 + erf(x * c))`. A sum of two partial products is
arithmetic alone, and no GELU. The rule that uses this: docs/rationale/kernels.md.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple


class Kind(StrEnum):
    """A kind of work. None of them can be composed of the others, but for sums, which products can do."""

    PRODUCT = "products"
    SUM = "sums"
    ARITHMETIC = "arithmetic"
    FUNCTION = "functions"
    """What no sum, product or quotient is: `exp`, `relu`, a maximum, a comparison."""
    REARRANGING = "rearranging"
    OTHER = "other"
    """Of operators that no kind is known of, and kernels of libraries that no operator launched."""


class Kinds(NamedTuple):
    """Of one operator."""

    needs: frozenset[Kind]
    """What it takes to do its work with other operators."""
    does: frozenset[Kind]
    """What it can do for other operators' work."""


def _kinds(needs: str, more: str = "") -> Kinds:
    first = frozenset(Kind[word] for word in needs.split())
    return Kinds(first, first | {Kind[word] for word in more.split()})


_PRODUCTS = (
    r"mm|bmm|addmm|addbmm|baddbmm|matmul|linear|mv|addmv|dot|vdot|inner|addr|outer|ger|tensordot|einsum|bilinear"
    r"|chain_matmul|scaled_mm|grouped_mm|\w*_linear|linalg_matmul|linalg_vecdot|linalg_multi_dot"
)
_CONVOLUTIONS = r"\w*conv(?:olution)?(?:_?(?:transpose|tbc))?[123]?d?\w*"
_WITH_FUNCTION = r"addmm_activation|\w*conv\w*(?:relu|pointwise)\w*|\w*linear_(?:pointwise|relu)\w*"
PRODUCT_NAMES, CONVOLUTION_NAMES = (
    re.compile(f"(?!(?:{_WITH_FUNCTION})$)(?:{names})") for names in (_PRODUCTS, _CONVOLUTIONS)
)
"""Names of operators that multiply matrices, and of those that convolve, and do nothing else."""

_TABLE = (
    (_WITH_FUNCTION, _kinds("PRODUCT FUNCTION", "SUM ARITHMETIC")),
    (f"{_PRODUCTS}|{_CONVOLUTIONS}", _kinds("PRODUCT", "SUM")),
    (r"\w*scaled_dot_product\w*|\w*(?:flash|efficient)_attention\w*", _kinds("PRODUCT")),
    (
        r"r?sub|subtract|add|mul|multiply|div|(?:true_)?divide|neg|negative|addcmul|addcdiv|lerp"
        r"|foreach_(?:add|sub|mul|div|neg|addcmul|addcdiv)",
        _kinds("ARITHMETIC"),
    ),
    ("pow|square|float_power|reciprocal", _kinds("ARITHMETIC", "FUNCTION")),
    (
        r"(?:nan)?(?:sum|mean)|prod|cumsum|cumprod|trace|var|std|var_mean|std_mean|norm|linalg_vector_norm"
        r"|linalg_norm|linalg_matrix_norm|frobenius_norm|(?:adaptive_)?avg_pool[123]d|adaptive_avg_pool"
        r"|count_nonzero|bincount|histc|index_add|scatter_add|sum_to_size|l1_loss|kl_div|nll_loss\w*",
        _kinds("SUM"),
    ),
    ("mse_loss|cosine_similarity|cosine_embedding_loss", _kinds("SUM ARITHMETIC")),
    (
        "logsumexp|logcumsumexp|cross_entropy_loss|smooth_l1_loss|huber_loss|binary_cross_entropy\\w*"
        "|hinge_embedding_loss|triplet_margin_loss|margin_ranking_loss|cdist\\w*|pairwise_distance|pdist",
        _kinds("SUM FUNCTION"),
    ),
    (r"(?:safe_|masked_)?(?:log_)?softmax\w*|softmin", _kinds("SUM FUNCTION ARITHMETIC")),
    (r"\w*batch_norm\w*", _kinds("ARITHMETIC", "SUM")),
    (r"\w*(?:layer|group|instance|rms|response)_norm\w*", _kinds("SUM ARITHMETIC")),
    ("gelu|silu|mish|hardswish|glu|softshrink|softsign|tanhshrink|xlogy", _kinds("FUNCTION ARITHMETIC")),
    (
        r"relu6?|leaky_relu|prelu|rrelu|elu|selu|celu|threshold|hardtanh|hardsigmoid|hardshrink|sigmoid|log_sigmoid"
        r"|softplus|tanh|sinh|cosh|a?(?:sin|cos|tan)h?|arc\w+|atan2|exp|exp2|expm1|log|log2|log10|log1p|sqrt|rsqrt"
        r"|erf|erfc|erfinv|l?gamma|lgamma|digamma|i0|sinc|special_\w+|abs|absolute|sign|sgn|signbit|floor|ceil"
        r"|round|trunc|fix|frac|fmod|remainder|floor_divide|clamp(?:_min|_max)?|clip|hypot|heaviside|copysign"
        r"|logaddexp2?|logit|where|masked_fill|eq|ne|lt|le|gt|ge|not_equal|less\w*|greater\w*|is(?:nan|inf|finite)"
        r"|logical_\w+|bitwise_\w+|nan_to_num|maximum|minimum|fmax|fmin|a?max|a?min|aminmax|arg(?:max|min|sort)"
        r"|topk|sort|msort|kthvalue|(?:nan)?median|mode|cummax|cummin|any|all|searchsorted|bucketize"
        r"|(?:adaptive_|fractional_)?max_pool[123]d\w*",
        _kinds("FUNCTION"),
    ),
    (
        r"clone|copy|to_copy|repeat|cat|concat\w*|[hvd]?stack|gather|take\w*|index|index_select|index_put\w*"
        r"|index_copy|index_fill|scatter|masked_select|masked_scatter|embedding|\w*pad(?:_nd|[123]d)?|roll|flip"
        r"|fliplr|flipud|rot90|tril|triu|diag\w*|repeat_interleave|tile|im2col|col2im|pixel_(?:un)?shuffle"
        r"|channel_shuffle|one_hot|nonzero|\w+_(?:scatter|copy)|block_diag|kron",
        _kinds("REARRANGING"),
    ),
)
_PATTERNS = tuple((re.compile(pattern), kinds) for pattern, kinds in _TABLE)
_UNKNOWN = Kinds(frozenset((Kind.OTHER,)), frozenset(Kind))


@lru_cache(maxsize=4096)
def kinds_of(name: str) -> Kinds:
    """What work an operator does, by its plain name (`layer_norm`, `addmm`): unknown names may do any."""
    return next((kinds for pattern, kinds in _PATTERNS if pattern.fullmatch(name)), _UNKNOWN)
