"""A problem, loaded: its module in a namespace of its own, its model, and inputs drawn from a seed."""

from __future__ import annotations

import copy
import itertools
import linecache
import random
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

import torch

from kernelproof.errors import UsageError
from kernelproof.types import Problem
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.contestant.random_draws import draws_noticed, seed_torch
from kernelproof.verifier.contestant.weight_draws import constructed

_counter = itertools.count()


class ProblemError(UsageError):
    """The problem's own code raised: the problem is at fault, not the candidate."""


class LoadedProblem:
    """A problem at one of its sizes. Code of different problems never shares a namespace."""

    def __init__(self, problem: Problem, size: str) -> None:
        if size not in problem.sizes:
            known = ", ".join(sorted(problem.sizes))
            raise UsageError(f"{problem.id} has no size {size!r}; it has {known}")
        self.problem = problem
        self.size = size
        self.draws_in_forward = False
        """Whether a forward has drawn random numbers so far, as dropout does: the seed decides its result."""
        self.drawn_constants: list[str] = []
        """Weights of the last model that would have one value throughout, had they not been drawn."""
        self._module = self._execute()
        for name, value in problem.sizes[size].items():
            setattr(self._module, name, copy.deepcopy(value))

    def init_arguments(self) -> list[Any]:
        """What Model and ModelNew are constructed with. Raises ProblemError."""
        return list(self._guarded("get_init_inputs", self._module.get_init_inputs))

    def sized_source(self) -> str:
        """The problem's text with this size's values set at its end, for a process of its own."""
        values = self.problem.sizes[self.size].items()
        return "\n".join([self.problem.source, *(f"{name} = {value!r}" for name, value in values), ""])

    def construct(self, seed: int, device: torch.device) -> torch.nn.Module:
        """A reference model whose weights come from `seed`, on `device`. It is constructed on the CPU; large
        weights are drawn on a GPU, and constant ones are drawn too, as in contestants.

        Train or eval mode is what the problem sets. Raises ProblemError.
        """
        arguments = self.init_arguments()
        seed_torch(seed)
        self.drawn_constants = []
        model = self._guarded(
            "Model(...)",
            lambda: constructed(lambda: self._module.Model(*arguments), seed, device, self.drawn_constants),
        )
        if not isinstance(model, torch.nn.Module):
            raise ProblemError(f"{self.problem.id}: Model is no torch.nn.Module")
        return model.to(device)

    def draw(self, seed: int, device: torch.device) -> list[Any]:
        """The arguments of forward, drawn from `seed` on `device`; integers and booleans keep their types."""
        seed_torch(seed)
        random.seed(seed)
        with torch.device(device):
            arguments = self._guarded("get_inputs", self._module.get_inputs)
        return [moved(argument, device) for argument in arguments]

    def run(self, model: torch.nn.Module, arguments: list[Any], seed: int) -> Any:
        """`model(*arguments)` without gradients, with the model's own randomness from `seed`."""
        seed_torch(seed)
        with torch.no_grad(), draws_noticed() as drew:
            value = self._guarded("forward", lambda: model(*arguments))
        self.draws_in_forward |= drew()
        return value

    def tried(self, model: torch.nn.Module, arguments: list[Any], seed: int) -> Any:
        """As `run`, and afterwards the model's buffers are what they were: it stays as it was constructed.

        A result that lies in a buffer changes with it.
        """
        before = {name: buffer.clone() for name, buffer in model.named_buffers()}
        value = self.run(model, arguments, seed)
        for name, buffer in model.named_buffers():
            if name in before and before[name].shape == buffer.shape:
                buffer.copy_(before[name])
        return value

    def _execute(self) -> types.ModuleType:
        name = f"problem_{next(_counter)}"
        filename = f"<{self.problem.id}>"
        module = types.ModuleType(name)
        source = self.problem.source
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        sys.modules[name] = module
        self._guarded("import", lambda: exec(compile(source, filename, "exec"), module.__dict__))
        for needed in ("Model", "get_inputs", "get_init_inputs"):
            if not hasattr(module, needed):
                raise ProblemError(f"{self.problem.id} does not define {needed}")
        return module

    def _guarded(self, what: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except torch.OutOfMemoryError:
            raise
        except (Exception, SystemExit) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise ProblemError(
                f"{self.problem.id}: {what} raised {type(error).__name__}: {error} (line {last.lineno})"
            ) from error


def moved(value: Any, device: torch.device) -> Any:
    """`value` with every tensor in it on `device`."""
    return mapped(value, lambda tensor: tensor.to(device))


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """`value` with `change` applied to every tensor in nested lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple):
        return tuple(mapped(item, change) for item in value)
    if isinstance(value, list):
        return [mapped(item, change) for item in value]
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def upcast(value: Any) -> Any:
    """`value` with floating tensors in float64 (complex ones in complex128), others as they are."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_complex():
            return tensor.to(torch.complex128)
        return tensor.double() if tensor.is_floating_point() else tensor

    return mapped(value, change)


def truth(loaded: LoadedProblem, model: torch.nn.Module, arguments: list[Any], seed: int) -> Any | None:
    """The reference computed in float64, or None where the problem does not allow it.

    Module and floating inputs are upcast; a problem that fixes a dtype inside forward, or that does not
    fit in memory twice as wide, has no float64 truth, and the native result stands in.
    """
    try:
        wide = copy.deepcopy(model).double()
        value = loaded.run(wide, upcast(arguments), seed)
    except (ProblemError, torch.OutOfMemoryError, RuntimeError):
        return None
    floats = [leaf for leaf in tensors(value) if leaf.is_floating_point()]  # numbers are wide already
    return value if all(leaf.dtype == torch.float64 for leaf in floats) else None
