"""Weights of a fresh model that hide mistakes, drawn while the model is constructed.

>>> norm = nn.LayerNorm(64)  # multiplies by ones, adds zeros: a kernel that leaves out both is right
>>> norm = constructed(lambda: nn.LayerNorm(64), seed, device)  # by 0.5 to 2, adds -0.2 to 0.6

Reference and candidate are constructed alike, so a candidate that folds, packs or renames its weights has
the same ones. Values depend on the seed, the constant, the number of elements, and how many such tensors came
before. Torch's generators give what they gave before; names, and the order of tensors of different sizes, do
not matter.

- A parameter of one value c throughout becomes c times 1/2 to 2 (log-uniform), one of zeros -0.2 to 0.6; a
  matrix of zeros is smaller, as its products are summed.
- A bias that torch draws, or any other vector with `uniform_(-b, b)`, is moved by b/2. Its mean would be
  nearly zero, and what averages over it (a logsumexp of many features) would hide that it was left out.
- Running statistics are drawn likewise for a module that is left in eval mode.

Left alone are single elements, integers, other buffers, and parameters that need no gradient: they may be
written into a program. So is what no function here sees (`weight.data[:] = 1`): the probe of other weights
asks about that.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.jit._builtins import _get_builtin_table
from torch.nn.modules.batchnorm import _NormBase

from kernelproof.verifier.contestant.random_draws import large_draws

BOUND = 0.4
"""Zeros become BOUND * (-1/2 to 3/2)."""
STATISTICS = ("running_mean", "running_var")


def constructed(
    make: Callable[[], torch.nn.Module], seed: int, device: torch.device, drawn: list[str] | None = None
) -> torch.nn.Module:
    """What `make` constructs; torch's generator has been seeded before.

    `seed`: of the constant weights; `device`: where large weights are drawn. `drawn` gets the names of those
    that would have one value throughout. Raises what `make` raises.
    """
    weights = _Weights(seed)
    with large_draws(device), weights.drawn_meanwhile():
        model = make()
    if isinstance(model, torch.nn.Module):
        for module in model.modules():
            if isinstance(module, _NormBase) and module.training:
                module.reset_running_stats()
        if drawn is not None:
            drawn += weights.drawn_names(model)
    return model


class _Weights:
    """The weights of one model that is being constructed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._adopted: dict[int, tuple[torch.Tensor, str, dict[float, int]]] = {}
        """Tensors by the address of their storage, which they keep alive: what they are, and for each
        constant that they had, how many of its kind came before."""
        self._empty: dict[int, torch.Tensor] = {}
        """Tensors without values so far. Fresh memory often holds zeros."""
        self._seen: Counter[tuple[str, int, float]] = Counter()
        self._first: dict[int, float] = {}
        """The first of the values drawn, by the same address: it shows whether they are still there."""

    def drawn_names(self, model: torch.nn.Module) -> list[str]:
        """Which weights of the model have values that were drawn in place of one value."""
        found = [*model.named_parameters(remove_duplicate=False), *model.named_buffers()]
        return [
            name
            for name, tensor in found
            if _is_plain(tensor) and self._first.get(_address(tensor)) == _first_value(tensor)
        ]

    @contextmanager
    def drawn_meanwhile(self) -> Iterator[None]:
        """What constructors call is replaced while the block runs."""
        tensor, parameter, module = torch.Tensor, torch.nn.Parameter, torch.nn.Module
        replaced: list[tuple[Any, str, Any]] = [
            (torch, "empty", self._no_values(torch.empty)),
            (parameter, "__new__", self._adopting(parameter.__new__)),
            (module, "register_buffer", self._registering(module.register_buffer)),
            (tensor, "fill_", self._filling(tensor.fill_)),
            (tensor, "zero_", self._filling(tensor.zero_)),
            (tensor, "uniform_", _moved(tensor.uniform_)),
        ]
        before = [owner.__dict__.get(name) for owner, name, _ in replaced]
        operators = _get_builtin_table()  # type: ignore[no-untyped-call]
        operators[id(replaced[0][2])] = "aten::empty"  # for torch.jit.script in a constructor
        for owner, name, function in replaced:
            setattr(owner, name, function)
        try:
            yield
        finally:
            del operators[id(replaced[0][2])]
            for (owner, name, function), old in zip(replaced, before, strict=True):
                if getattr(owner, name) is not function:  # somebody else has replaced it since
                    continue
                if old is None:
                    delattr(owner, name)
                else:
                    setattr(owner, name, old)

    def _no_values(self, empty: Callable[..., Any]) -> Callable[..., Any]:
        def make_empty(*size: Any, **more: Any) -> Any:
            tensor = empty(*size, **more)
            if _is_plain(tensor):
                self._empty[_address(tensor)] = tensor
            return tensor

        return make_empty

    def _adopting(self, new: Callable[..., Any]) -> Callable[..., Any]:
        def adopt(cls: type, data: Any = None, requires_grad: bool = True) -> Any:
            parameter = new(cls, data, requires_grad)
            if requires_grad and _is_plain(parameter):
                self._adopt(parameter, "parameter")
            return parameter

        return adopt

    def _registering(self, register: Callable[..., None]) -> Callable[..., None]:
        def register_buffer(module: Any, name: str, tensor: Any, persistent: bool = True) -> None:
            register(module, name, tensor, persistent)
            if name.endswith(STATISTICS) and _is_plain(tensor):
                self._adopt(tensor, "statistic")

        return register_buffer

    def _filling(self, fill: Callable[..., Any]) -> Callable[..., Any]:
        def fill_weights(tensor: Any, *arguments: Any, **more: Any) -> Any:
            result = fill(tensor, *arguments, **more)
            if _is_plain(tensor) and _address(tensor) in self._adopted:
                whole = self._adopted[_address(tensor)][0]
                if whole.numel() == tensor.numel() and _address(whole) == _address(tensor):
                    self._draw(tensor)
            return result

        return fill_weights

    def _adopt(self, tensor: torch.Tensor, kind: str) -> None:
        address = _address(tensor)
        if address in self._adopted and _address(self._adopted[address][0]) == address:
            return  # tied to another
        self._adopted[address] = (tensor, kind, {})
        empty = self._empty.pop(address, None)
        if empty is None or _address(empty) != address:
            self._draw(tensor)

    @torch.no_grad()
    def _draw(self, tensor: torch.Tensor) -> None:
        """Other values in place of one value throughout."""
        flat = tensor.detach().reshape(-1)
        value = float(flat[0])
        if not bool((flat[:2] == value).all()) or not bool((flat == value).all()):
            return
        _, kind, places = self._adopted[_address(tensor)]
        if value not in places:
            places[value] = self._seen[kind, tensor.numel(), value]
            self._seen[kind, tensor.numel(), value] += 1
        words = f"{self._seed} {kind} {tensor.numel()} {value} {places[value]}"
        seed = int.from_bytes(hashlib.sha256(words.encode()).digest()[:7], "big")
        share = torch.rand(tensor.shape, generator=torch.Generator().manual_seed(seed), device="cpu")
        if value:
            drawn = value * torch.exp2(2 * share - 1)
        else:
            lengths = [length for length in tensor.shape if length > 1]
            terms = tensor.numel() // lengths[0] if len(lengths) > 1 else 1
            drawn = BOUND * terms**-0.5 * (2 * share - 0.5)
        tensor.detach().copy_(drawn)
        self._first[_address(tensor)] = _first_value(tensor)


def _moved(uniform: Callable[..., Any]) -> Callable[..., Any]:
    def draw_uniform(tensor: Any, *arguments: Any, **more: Any) -> Any:
        result = uniform(tensor, *arguments, **more)
        low, high = (*arguments, *(more[name] for name in ("from", "to") if name in more), None, None)[:2]
        if _is_plain(tensor) and tensor.dim() == 1 and low is not None and high is not None and low == -high:
            with torch.no_grad():
                tensor.detach().add_(high / 2)
        return result

    return draw_uniform


def _is_plain(tensor: Any) -> bool:
    """Whether it is a tensor with memory, and of several floating numbers."""
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.is_floating_point()
        and tensor.numel() > 1
        and tensor.device.type in ("cpu", "cuda")
        and tensor.layout is torch.strided
    )


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _first_value(tensor: torch.Tensor) -> float:
    return float(tensor.detach().reshape(-1)[0])
