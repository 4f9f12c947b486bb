"""How large a problem is, and the same problem at a size at which a processor decides in a moment."""

from __future__ import annotations

import ast
import copy
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch

from kernelproof.types import Problem
from kernelproof.verifier.contestant.encoding import tensors

KEPT = 8
"""Literals up to this one may mean a kernel's width or a number of groups, and stay."""
ENOUGH = 150_000
"""Elements of inputs, outputs and weights at which a problem is small."""
WORTH = 0.99
"""A step leaves at most so much. Where weights are nearly all, an image of a few pixels is no help."""
SMALL = "small"


@dataclass(frozen=True)
class Extent:
    """The tensors of a problem at one of its sizes."""

    slot_bytes: int
    """One set of inputs, and four of outputs: what a referee lays out for a call."""
    weight_bytes: int
    elements: int
    shapes: tuple[tuple[int, ...], ...]
    """Of the outputs."""


def execute(source: str) -> dict[str, Any]:
    """The names that a problem's or a candidate's text defines. Raises what the text raises."""
    names: dict[str, Any] = {"__name__": "a_problem"}
    exec(compile(source, "<a problem>", "exec"), names)
    return names


def extent(source: str, name: str = "Model") -> Extent | None:
    """What this text's model holds, on tensors without storage; None where that does not work."""
    try:
        names = execute(source)
        with torch.device("meta"), torch.no_grad():
            model = names[name](*names["get_init_inputs"]()).to("meta")
            inputs = [x.to("meta") if isinstance(x, torch.Tensor) else x for x in names["get_inputs"]()]
            outputs = tensors(model(*inputs))
    except Exception:  # whatever a strange text does there
        return None
    weights = [*model.parameters(), *model.buffers()]
    wide = [sum(t.numel() * t.element_size() for t in group) for group in (tensors(inputs), outputs, weights)]
    elements = sum(t.numel() for t in (*tensors(inputs), *outputs, *weights))
    return Extent(wide[0] + 4 * wide[1], wide[2], elements, tuple(tuple(t.shape) for t in outputs))


def sized(problem: Problem, size: str) -> str:
    """The problem's text with a size's values set at its end."""
    values = problem.sizes[size].items()
    return "\n".join([problem.source, *(f"{name} = {value!r}" for name, value in values), ""])


def small(problem: Problem) -> str:
    """The problem's text at its own size `small`; where it has none, with halved numbers."""
    return sized(problem, SMALL) if SMALL in problem.sizes else halved(problem.source, ENOUGH)


def halved(source: str, elements: int, seconds: float = 4.0) -> str:
    """A problem's text with numbers halved until its tensors hold at most so many elements, as long as the
    model still takes its inputs: all at once, which keeps what they are to each other, then the largest ones,
    then each. Takes about so many seconds of a processor."""
    best, there = ast.parse(source), extent(source)
    until = time.process_time() + seconds
    stuck: set[int] = set()
    together = True
    while there is not None and there.elements > elements and time.process_time() < until:
        numbers = [node.value for node in _literals(best)]
        largest = max(set(numbers) - stuck, default=None)
        if largest is None:
            break
        alike = [place for place, number in enumerate(numbers) if number == largest]
        choices = [alike, *([place] for place in alike if len(alike) > 1)]
        for places in [list(range(len(numbers)))] if together else choices:
            tree = copy.deepcopy(best)
            for place, node in enumerate(_literals(tree)):
                node.value = node.value // 2 if place in places else node.value
            smaller = extent(ast.unparse(tree))
            if smaller is not None and smaller.elements < WORTH * there.elements:
                best, there = tree, smaller
                break
        else:
            stuck |= set() if together else {largest}
            together = False
    return ast.unparse(best)


def smaller(source: str, elements: int) -> dict[str, Any]:
    """The text that `halved` makes, and what it holds."""
    there = extent(text := halved(source, elements))
    return {"source": text, "extent": there and asdict(there)}


def _literals(tree: ast.Module) -> list[Any]:
    """The whole numbers that may be sizes: those outside of classes."""
    outside = [node for node in tree.body if not isinstance(node, ast.ClassDef)]
    return [
        node
        for part in outside
        for node in ast.walk(part)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > KEPT
    ]
