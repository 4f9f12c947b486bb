"""Which candidates are worth a verdict, decided by program: in float64, at a small size, with drawn weights.

With r the reference in float64, n the native reference's own error in float32 (at least a rounding, 2^-24),
and d what the candidate in float64 is off by, all of the same inputs:

- a mutant is *equivalent* where d <= 64 * 2^-29 n: that much is float64's own rounding. Inputs and buffers
  are compared as well, as the call leaves them. So is one that computes the same bits in the problem's own
  precision, in which torch may run a layer as one operator and leave no place to change.
- It is *below rounding* where d <= n, in norm and at the worst element: an honest float32 program, PyTorch's
  own, is as far off, so no judge can tell them apart by what they compute.
- A twin is *unfair* where d is more than 1024 * 2^-29 n: it computes something else.

The drawn weights are those that the judge constructs, each moved by a normal number of half their size. A
mutant that can be seen with these but not with the judge's is *unseen with its own weights*.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import torch

from benchmarks.mutants.recipes import ONCE, TWIN, Recipe, maker, recipes_for
from benchmarks.mutants.sizes import execute, extent, sized, small
from kernelproof.types import Problem
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.contestant.loop import outputs_of
from kernelproof.verifier.contestant.random_draws import draws_noticed, seed_torch
from kernelproof.verifier.contestant.weight_draws import constructed
from kernelproof.verifier.referee.inputs.problem import upcast

ROUNDING, RATIO = 2.0**-24, 2.0**-29
"""Of float32; float64's over float32's."""
EQUAL, FAIR = 64.0, 1024.0
DRAWS = 2
SECONDS = 60.0
"""Most of a processor for the decisions on one problem."""
UNKNOWN_BYTES = 4 << 30
"""The size assumed for a problem that cannot be run without storage."""


class Decision(StrEnum):
    """The decision on a candidate before it is judged."""

    JUDGE = "judge"
    OWN_WEIGHTS = "unseen with its own weights"
    """Judged, and counted apart."""
    EQUIVALENT = "equivalent"
    BELOW_ROUNDING = "below rounding"
    DRAWS = "draws random numbers"
    UNFAIR = "unfair"
    NOTHING = "nothing to change"
    RAISES = "raises"
    NO_TIME = "no time to decide"


JUDGED = (Decision.JUDGE, Decision.OWN_WEIGHTS)


@dataclass(frozen=True)
class Run:
    """The results of one call, and the state it left behind."""

    outputs: list[torch.Tensor]
    left: list[torch.Tensor]
    """Inputs and buffers after the call."""


@dataclass(frozen=True)
class Setup:
    """One draw of weights and inputs, in float64, and what the reference makes of them."""

    model: torch.nn.Module
    inputs: list[Any]
    exact: Run
    native: Run
    """The same in the problem's own precision."""


class Small:
    """A problem at a size at which all its candidates are decided on the processor."""

    def __init__(self, problem: Problem) -> None:
        """Raises what the problem's text raises."""
        self.problem = problem.model_copy(update={"source": small(problem)})
        self._names = execute(self.problem.source)
        model, inputs = self._drawn(0, moved=False)
        self._own_draw = model, inputs
        with draws_noticed() as drawn, torch.no_grad():
            copy.deepcopy(model)(*copy.deepcopy(inputs))
            self.draws = drawn()  # random numbers, in forward
        self.recipes = recipes_for(copy.deepcopy(model), copy.deepcopy(inputs))
        self._own = _setup(model, inputs)
        self._moved = [_setup(*self._drawn(seed, moved=True)) for seed in range(1, 1 + DRAWS)]

    def decide(self, recipe: Recipe) -> tuple[Decision, str]:
        """The decision, and what it rests on in a few words."""
        if recipe.role == TWIN and self.draws:
            return Decision.DRAWS, "its own draws would be others"
        try:
            kind = execute(recipe.source(self.problem, {}))["ModelNew"]
            apart = _apart(kind, self._moved[0])
            if apart.share <= 1:  # or one draw is enough
                apart = max(apart, *(_apart(kind, s) for s in self._moved[1:]), key=lambda each: each.share)
            if recipe.role == TWIN:
                once = 1.0 if recipe.row == ONCE else FAIR * RATIO
                return Decision.JUDGE if apart.share <= once else Decision.UNFAIR, str(apart)
            if apart.share <= EQUAL * RATIO:
                return Decision.EQUIVALENT, str(apart)
            if apart.outputs <= 1 and apart.left <= EQUAL * RATIO:
                return Decision.BELOW_ROUNDING, str(apart)
            if _same(_run(kind, *self._own_draw), self._own.native):
                return Decision.EQUIVALENT, f"the same bits in its own precision; in float64 {apart}"
            seen = _apart(kind, self._own).share > EQUAL * RATIO
        except Exception as error:  # whatever a changed program does
            nothing = "nothing to change" in str(error)
            return Decision.NOTHING if nothing else Decision.RAISES, f"{type(error).__name__}: {error}"[:200]
        return Decision.JUDGE if seen else Decision.OWN_WEIGHTS, str(apart)

    def _drawn(self, seed: int, *, moved: bool) -> tuple[torch.nn.Module, list[Any]]:
        seed_torch(seed)
        make = self._names["Model"]
        model = constructed(lambda: make(*self._names["get_init_inputs"]()), seed, torch.device("cpu"))
        if moved:
            _move(model)
        return model, list(self._names["get_inputs"]())


def _setup(model: torch.nn.Module, inputs: list[Any]) -> Setup:
    native = _run(type(model), model, inputs)
    try:
        wide = copy.deepcopy(model).double()
        return Setup(wide, upcast(inputs), _run(type(model), wide, upcast(inputs)), native)
    except RuntimeError:  # it fixes a dtype: then bits decide
        return Setup(model, inputs, native, native)


def _run(kind: Any, model: torch.nn.Module, inputs: list[Any]) -> Run:
    """A call of `model` as one of `kind`, which may have another forward."""
    shared = {id(weight): weight for weight in model.parameters()}  # nothing here changes their values
    model, inputs = copy.deepcopy(model, shared), copy.deepcopy(inputs)
    model.__class__ = kind
    seed_torch(0)
    with torch.no_grad():
        result = model(*inputs)
    outputs = [output.clone() for output in outputs_of(result, torch.device("cpu"))]
    return Run(outputs, [*tensors(inputs), *model.buffers()])


def _same(run: Run, other: Run) -> bool:
    pairs = zip([*run.outputs, *run.left], [*other.outputs, *other.left], strict=True)
    return all(torch.equal(mine.nan_to_num(), its.nan_to_num()) for mine, its in pairs)


def _apart(kind: Any, setup: Setup) -> Apart:
    run = _run(kind, setup.model, setup.inputs)
    return Apart(
        _share(run.outputs, setup.exact.outputs, setup.native.outputs),
        _share(run.left, setup.exact.left, setup.native.left),
    )


@dataclass(frozen=True)
class Apart:
    """How far a candidate is off, in units of the native reference's own float32 error."""

    outputs: float
    left: float

    @property
    def share(self) -> float:
        return max(self.outputs, self.left)

    def __str__(self) -> str:
        state = f", state by {self.left:.2g}" if self.left else ""
        return f"off by {self.outputs:.2g} float32 errors{state}"


def _share(
    seen: Sequence[torch.Tensor], exact: Sequence[torch.Tensor], native: Sequence[torch.Tensor]
) -> float:
    """The largest error of all, in norm or at one element, over the native one's; infinite for others."""
    if [tensor.shape for tensor in seen] != [tensor.shape for tensor in exact]:
        raise ValueError("another shape")
    worst = 0.0
    for mine, true, own in zip(seen, exact, native, strict=True):
        if not true.is_floating_point() or not bool(torch.isfinite(true).all()):
            same = torch.equal(mine, true) or torch.equal(mine.nan_to_num(), true.nan_to_num())
            worst = worst if same else torch.inf
            continue
        error, yard = (mine - true).double().nan_to_num(torch.inf), (own - true).double()
        for norm in (torch.linalg.vector_norm, lambda tensor: tensor.abs().amax()):
            if true.numel():
                unit = max(float(norm(yard)), ROUNDING * float(norm(true.double())))
                off = float(norm(error))
                worst = max(worst, off / unit if unit else (torch.inf if off else 0.0))
    return worst


def _move(model: torch.nn.Module) -> None:
    """Moves each weight by a normal number of half their size; statistics too. Variances stay positive."""
    with torch.no_grad():
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if name.endswith("running_var"):
                tensor.mul_(torch.empty_like(tensor).uniform_(0.5, 1.5))
            elif isinstance(tensor, torch.nn.Parameter) or name.endswith("running_mean"):
                size = float(tensor.double().square().mean().sqrt()) if tensor.numel() else 0.0
                tensor.add_(torch.randn_like(tensor) * (0.5 * size or 0.2))


def decisions(problem: Problem, size: str) -> list[dict[str, Any]]:
    """A record for each candidate of a problem, and what it holds at the size at which it is judged."""
    until, there = time.process_time() + SECONDS, extent(sized(problem, size))
    common: dict[str, Any] = {"suite": problem.suite, "problem": problem.id, "title": problem.name}
    common |= {"sha256": problem.sha256, "maker": maker(), "size": size, "extent": there and asdict(there)}
    try:
        decided = Small(problem)
    except Exception as error:  # a problem that does not run on a processor
        why = f"{type(error).__name__}: {error}"[:200]
        return [common | {"role": "", "row": "", "name": "", "call": "", "decision": "raises", "why": why}]
    records, parts = [], False
    for recipe in decided.recipes:
        halves = recipe.row == "the batch in two parts"
        if halves and parts:  # one way to divide the batch is enough
            continue
        decision, why = Decision.NO_TIME, ""
        if time.process_time() < until:
            decision, why = decided.decide(recipe)
        if decision in JUDGED and recipe.row == "another axis" and there is not None:
            changed = extent(recipe.source(problem, problem.sizes[size]), "ModelNew")
            if changed is None or changed.shapes != there.shapes:  # lengths are equal at the small size alone
                decision, why = Decision.RAISES, "the result has another shape"
        parts |= halves and decision in JUDGED
        records.append(common | asdict(recipe) | {"decision": decision.value, "why": why})
    return records
