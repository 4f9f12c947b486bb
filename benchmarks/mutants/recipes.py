"""Which mutants and twins a problem has, from the operators that its reference calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from benchmarks.mutants import parts
from kernelproof.hashing import sha256_text
from kernelproof.types import Problem
from kernelproof.verifier.contestant.encoding import tensors

MUTANT, TWIN = "mutant", "twin"
ONCE = "float64, rounded once"
FORMATS = ("tf32", "half", "bfloat16")
MOST_PLACES = {"constant": 3, "axis": 3, "mask": 2}
"""Places of a kind that are changed one at a time, the first and the last among them."""
PLACES = 2
ROWS = {
    "constant": "a constant off by 1 %",
    "bias": "a bias dropped",
    "eps": "eps times ten",
    "gelu": "GELU by tanh",
    "statistic": "a statistic not updated",
    "diagonal": "a mask off by one",
    "mask": "a mask off by one",
    "causal": "a mask off by one",
    "axis": "another axis",
    "transposed": "another axis",
    "term": "the last term of a sum left out",
    "function": "a function left out",
}
"""Kinds of places, with the row of the table that their mutants count in."""
_VALUES: dict[str, tuple[Any, ...]] = {"constant": (1.01,), "eps": (10.0,), "gelu": ("tanh",), "mask": (1,)}
_VALUES |= {"diagonal": (1, -1), "axis": (1, 2)}
_ALL_AT_ONCE = ("bias", "eps", "statistic")
"""Kinds of which one mutant changes all places."""


@dataclass(frozen=True)
class Recipe:
    """How one candidate is made of a problem."""

    role: str
    """MUTANT or TWIN."""
    row: str
    """Under which the table counts it."""
    name: str
    """What it is, once in a problem: `eps times ten: place 2 of 3`."""
    call: str
    """The expression that its forward returns."""

    def source(self, problem: Problem, values: dict[str, Any]) -> str:
        """The candidate's text, at the size that `values` make."""
        set_values = "".join(f"{name} = {value!r}\n" for name, value in values.items())
        return "\n\n".join([problem.source, set_values, _parts(), _MODEL.format(call=self.call)])


_MODEL = """class ModelNew(Model):
    def forward(self, *inputs):
        forward = super().forward
        return {call}
"""


@cache
def _parts() -> str:
    return Path(parts.__file__).read_text()


@cache
def maker() -> str:
    """A hash of the code that makes candidates: decisions that another has made are no longer valid."""
    return sha256_text(_parts() + Path(__file__).read_text())[:12]


class _Places(parts.Calls):  # type: ignore[no-untyped-call]
    """Counts the places of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.count = dict.fromkeys((*ROWS, "operands"), 0)

    def otherwise(self, func: Any, named: dict[str, Any]) -> Any:
        for kind in self.count:
            self.count[kind] += sum(1 for _ in parts.sites(kind, func, named))
        return NotImplemented


def recipes_for(model: torch.nn.Module, inputs: list[Any]) -> list[Recipe]:
    """All that this model may have with these inputs; which are fair or equivalent is decided later.

    Raises what its forward does.
    """
    with torch.no_grad(), _Places() as places:
        outputs = model(*inputs)
    floats = [value for value in tensors(inputs) if value.is_floating_point()]
    return [*_twins(model, inputs, floats), *_mutants(places.count, inputs, tensors(outputs), bool(floats))]


def _twins(model: torch.nn.Module, inputs: list[Any], floats: list[torch.Tensor]) -> Iterator[Recipe]:
    yield Recipe(TWIN, ONCE, "float64", "in_float64(self, forward, inputs)")
    yield Recipe(TWIN, "ATen's decompositions", "decomposed", "under(Decomposed(), forward, inputs)")
    yield Recipe(
        TWIN, "other orders of summation", "sums in halves", "under(Resummed(False), forward, inputs)"
    )
    yield Recipe(TWIN, "other orders of summation", "sums reversed", "under(Resummed(True), forward, inputs)")
    if any(value.dim() in (4, 5) for value in floats):
        call = "in_channels_last(self, forward, inputs)"
        yield Recipe(TWIN, "channels last", "channels last", call)
    for split in _splits(inputs):
        call = f"in_two_parts(forward, inputs, {split})"
        yield Recipe(TWIN, "the batch in two parts", f"inputs {split} in two parts", call)


def _splits(inputs: list[Any]) -> list[tuple[int, ...]]:
    """The inputs that may be a batch: all with as long a first dimension as the first; the first alone."""
    shaped = [(n, x.shape[0]) for n, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.dim()]
    if not shaped:
        return []
    alike = tuple(place for place, length in shaped if length == shaped[0][1])
    return [alike] if len(alike) == 1 else [alike, alike[:1]]


def _mutants(
    count: dict[str, int], inputs: list[Any], outputs: list[torch.Tensor], floats: bool
) -> Iterator[Recipe]:
    for kind, row in ROWS.items():
        for which in _chosen(count[kind], MOST_PLACES.get(kind, PLACES)):
            for value in _VALUES.get(kind, (None,)):
                yield _changed(row, kind, which, count[kind], value)
        if kind in _ALL_AT_ONCE and count[kind] > 1:
            yield _changed(row, kind, None, count[kind], _VALUES.get(kind, (None,))[0])
    for name in FORMATS:
        row = f"operands in {name}"
        if count["operands"]:
            yield _changed(row, "operands", None, count["operands"], name)
        elif floats:
            call = f"forward(*tree_map_only(torch.Tensor, lambda t: rounded(t, {name!r}), inputs))"
            yield Recipe(MUTANT, row, f"inputs in {name}", call)
    yield Recipe(MUTANT, "the last element", "the last element zero", "with_last_zero(forward(*inputs))")
    if any(value.is_floating_point() for value in outputs):
        row = "one element in a thousand off by 0.2 %"
        yield Recipe(MUTANT, row, "of the output", "with_few_scaled(forward(*inputs), 1.002)")
    if floats:
        row = "one element in a thousand off by 0.2 %"
        yield Recipe(MUTANT, row, "of the inputs", "forward(*with_few_scaled(inputs, 1.002))")
        row = "an input changed"
        for name, last in (("the whole", False), ("its last element", True)):
            call = f"then_changed(forward(*inputs), inputs, {last})"
            yield Recipe(MUTANT, row, f"{name}, afterwards", call)


def _chosen(count: int, most: int) -> list[int]:
    """At most `most` of so many places, evenly spread, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]


def _changed(row: str, kind: str, which: int | None, count: int, value: Any) -> Recipe:
    place = f"all {count} places" if which is None else f"place {which + 1} of {count}"
    name = f"{kind}{'' if value is None else f' {value}'}, {place}"
    return Recipe(MUTANT, row, name, f"under(Changed({kind!r}, {which!r}, {value!r}), forward, inputs)")
