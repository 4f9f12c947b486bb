"""Recorded calls on the host, and what they come to: operators of torch, functions of the candidate's.

Of operators that call each other one counts, with all that it calls. docs/rationale/kernels.md has the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import torch


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LIBRARY_NAMESPACES = _words(
    "aten prims prim prepacked quantized _quantized quantization sparse mkl mkldnn mkldnn_prepacked onednn "
    "xnnpack fbgemm _native inductor inductor_prims rngprims debugprims export profiler static_runtime c10d "
    "_c10d_functional _c10d_functional_autograd _dtensor symm_mem torchvision torchaudio torchao"
)
"""Operators of other namespaces are the candidate's own."""

_ALLOCATE = _words(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided _efficientzerotensor resize_ "
    "resize_as_ set_ detach_ squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_ rename_ "
    "requires_grad_ retain_grad _unsafe_view record_stream lift"
)
"""Operators that touch no element: memory is taken, given another shape, or noted."""
_MOVE = _words(
    "copy_ copy clone _to_copy _copy_from _copy_from_and_resize _pin_memory item _local_scalar_dense "
    "_foreach_copy_ _foreach_zero_ zero zero_ zeros zeros_like new_zeros ones ones_like new_ones full "
    "full_like new_full fill fill_ scalar_tensor arange repeat"
)
"""Operators that copy, cast or fill. Those that rearrange (`cat`, `gather`, `pad`) count as computing."""

MARK = "kernelproof function "

Key = tuple[str, str]
"""Kind and name."""
Totals = dict[Key, tuple[int, int]]
"""Count and nanoseconds of each."""


class Span(NamedTuple):
    """One recorded call; times in nanoseconds."""

    name: str
    """`aten::mm`, or a mark and a function's name."""
    start: int
    end: int
    thread: int
    correlation: int = 0
    """The number by which a kernel names its launch."""
    elements: int = 0
    """Elements of all tensors that it got."""


class Attributed(NamedTuple):
    """What spans come to."""

    totals: Totals
    owners: dict[int, Key]
    """With what a span of a library's counts, by the span's correlation."""
    elements: dict[Key, int]
    """Elements of the tensors that a library's operator got, in all its calls."""


def calls(spans: Iterable[Span]) -> Totals:
    """What the spans come to: `function` (marked), `operator` (computes) or `copy` (copies, casts, fills)."""
    return attributed(spans).totals


def attributed(spans: Iterable[Span]) -> Attributed:
    """The same, with what counts for what.

    A library's operator counts with all that it calls. A function or an operator of the candidate's counts
    without the operators that it calls. Operators that only allocate, view or delegate are left out.
    """
    totals: Totals = {}
    owners: dict[int, Key] = {}
    elements: dict[Key, int] = {}
    stacks: dict[int, list[tuple[int, Key, bool]]] = {}
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        stack = stacks.setdefault(span.thread, [])
        while stack and stack[-1][0] <= span.start:
            stack.pop()
        caller, in_library = stack[-1][1:] if stack else (None, False)
        if in_library and caller is not None:
            owners[span.correlation] = caller
            continue
        kind, name, is_library = _kind(span.name)
        if not kind:
            continue
        key = (kind, name)
        spent = span.end - span.start
        add(totals, key, 1, spent)
        if caller is not None:
            add(totals, caller, 0, -spent)
        if is_library:
            owners[span.correlation] = key
            elements[key] = elements.get(key, 0) + span.elements
        stack.append((span.end, key, is_library))
    return Attributed(totals, owners, elements)


def add(totals: Totals, key: Key, count: int, ns: int) -> None:
    before = totals.get(key, (0, 0))
    totals[key] = (before[0] + count, before[1] + ns)


def _kind(name: str) -> tuple[str, str, bool]:
    """Kind, name and whether it is a library's; no kind for what does not count."""
    if name.startswith(MARK):
        return ("function", name.removeprefix(MARK), False) if name != MARK else ("", "", False)
    namespace, _, base = name.partition("::")
    if not base or "::" in base:  # a range that is no operator
        return "", "", False
    dotted = f"{namespace}.{base}"
    if namespace not in LIBRARY_NAMESPACES:
        return "operator", dotted, False
    if base in _MOVE or base.endswith("_copy"):
        return "copy", dotted, True
    return ("operator" if base not in _ALLOCATE and _computes(name) else ""), dotted, True


@lru_cache(maxsize=4096)
def _computes(name: str) -> bool:
    """False for an operator that only views (its result is an alias), delegates to others, or says something
    of a tensor; judged by the schemas of all its overloads."""
    schemas = [
        s for s in torch._C._jit_get_schemas_for_operator(name) if torch._C._dispatch_has_kernel(_full(s))
    ]
    return not schemas or not all(_views(s) or _delegates(s) or _tells(s) for s in schemas)


def _full(schema: Any) -> str:
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


def _views(schema: Any) -> bool:
    aliases = [result.alias_info for result in schema.returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


def _delegates(schema: Any) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(_full(schema), "CompositeImplicitAutograd")


def _tells(schema: Any) -> bool:
    return bool(schema.returns) and not any("Tensor" in str(result.type) for result in schema.returns)
