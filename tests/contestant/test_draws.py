"""Large weights are drawn elsewhere: the same for the same seed, and as they should be spread."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from kernelproof.verifier.contestant.random_draws import large_draws

CPU = torch.device("cpu")


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(300, 200)
        self.small = nn.Linear(3, 2)
        self.bias = nn.Parameter(torch.randn(5))
        self.table = nn.Embedding(200, 100)


class Renamed(nn.Module):
    """Draws the same in the same order."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(200, 300))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self.weight.data.mul_(2.0)


def drawn(make: type[nn.Module], seed: int, piece: int = 10_000) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    with large_draws(CPU, large=10_000, piece=piece, always=True):
        return make().state_dict()


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    one, same, other = drawn(Model, 1), drawn(Model, 1), drawn(Model, 2)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(drawn(Renamed, 1)["weight"], 2.0 * one["first.weight"])


@pytest.mark.parametrize("piece", [7_919, 1 << 20])
def test_they_are_spread_as_the_layers_want(piece: int) -> None:
    found = drawn(Model, 3, piece)
    weight, table = found["first.weight"], found["table.weight"]
    bound = 1 / math.sqrt(300)
    assert weight.shape == (200, 300) and weight.abs().max() <= bound
    assert abs(float(weight.mean())) < 0.01 * bound
    assert abs(float(weight.std()) / (bound / math.sqrt(3)) - 1) < 0.02
    assert abs(float(table.std()) - 1) < 0.03 and len(table.unique()) > 0.99 * table.numel()


def test_what_torch_refuses_and_what_is_none_of_it_stays_torchs() -> None:
    torch.manual_seed(5)
    alone = torch.empty(100, 100).uniform_(generator=torch.Generator().manual_seed(1))
    wide = torch.empty(20_000, dtype=torch.float64)
    with large_draws(CPU, large=1, always=True):
        again = torch.empty(100, 100).uniform_(generator=torch.Generator().manual_seed(1))
        with pytest.raises(RuntimeError, match="leaf"):
            torch.empty(20_000, requires_grad=True).uniform_()
        torch.manual_seed(6)
        wide.uniform_()
    torch.manual_seed(6)
    assert torch.equal(alone, again) and torch.equal(wide, torch.empty_like(wide).uniform_())


class Parameters(nn.Module):
    """Weights that no layer holds, and what a layer would draw in their place."""

    def __init__(self, *, layers: bool) -> None:
        super().__init__()
        if layers:
            self.wide = nn.Parameter(torch.empty(200, 300).normal_())
            self.flat = nn.Parameter(torch.empty(20_000).uniform_())
        else:
            self.wide = nn.Parameter(torch.randn((200, 300)))
            self.flat = nn.Parameter(torch.rand(20_000, dtype=torch.float32, device="cpu"))


def test_weights_of_no_layer_are_drawn_as_those_of_layers_are() -> None:
    found = []
    for layers in (True, False):
        torch.manual_seed(8)
        with large_draws(CPU, large=10_000, piece=7_919, always=True):
            found.append(Parameters(layers=layers).state_dict())
    assert all(torch.equal(found[0][name], found[1][name]) for name in ("wide", "flat"))
    torch.manual_seed(8)
    assert not torch.equal(found[1]["wide"], torch.randn(200, 300))  # else nothing was replaced


@pytest.mark.parametrize("name", ["rand", "randn"])
def test_other_calls_of_a_factory_are_torchs(name: str) -> None:
    def asked() -> list[torch.Tensor]:
        torch.manual_seed(9)
        make = getattr(torch, name)
        own = torch.Generator().manual_seed(1)
        calls = [make(2, 3), make(200, dtype=torch.float64), make(size=(300,)), make(200, generator=own)]
        with pytest.raises(TypeError):
            make("many")
        return [*calls, make(200, requires_grad=True), make(())]

    torchs, plain = getattr(torch, name), asked()
    with large_draws(CPU, large=100, always=True):
        assert getattr(torch, name) is not torchs
        replaced = asked()
    assert [each.dtype for each in plain] == [each.dtype for each in replaced]
    assert all(torch.equal(a, b) for a, b in zip(plain[:4], replaced[:4], strict=True))
    assert replaced[4].requires_grad and replaced[4].is_leaf
    assert getattr(torch, name) is torchs


def test_a_processor_draws_by_itself() -> None:
    torch.manual_seed(1)
    with large_draws(CPU):
        one = torch.empty(1 << 22).uniform_()
    torch.manual_seed(1)
    assert torch.equal(one, torch.empty(1 << 22).uniform_())


def test_torch_is_afterwards_as_it_was() -> None:
    before = torch.Tensor.uniform_, torch.Tensor.normal_
    with pytest.raises(ValueError, match="within"), large_draws(CPU, always=True):
        assert torch.Tensor.uniform_ is not before[0]
        raise ValueError("within")
    assert (torch.Tensor.uniform_, torch.Tensor.normal_) == before
    assert "uniform_" not in vars(torch.Tensor)
