"""Constant weights are drawn in the constructor, alike however a program names and initialises them."""

from __future__ import annotations

from typing import TypeVar

import pytest
import torch
from torch import nn

from kernelproof.verifier.contestant.weight_draws import constructed

CPU = torch.device("cpu")
M = TypeVar("M", bound=nn.Module)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(300, 200)
        self.first, self.second = nn.LayerNorm(200), nn.LayerNorm(200)
        self.norm = nn.BatchNorm1d(200).eval()
        self.scale = nn.Parameter(1e-3 * torch.ones(200, 1))
        self.last = nn.Linear(200, 100)
        nn.init.zeros_(self.last.weight)


class Renamed(nn.Module):
    """The same weights under other names, in another order, by other functions; one is folded."""

    def __init__(self) -> None:
        super().__init__()
        self.shift, self.gain = nn.Parameter(torch.zeros(200)), nn.Parameter(torch.empty(200))
        self.gain.data.fill_(1.0)
        self.register_buffer("running_var", torch.ones(200))
        self.register_buffer("running_mean", torch.zeros(200))
        self.layer_scale = nn.Parameter(torch.full((200, 1), 1e-3), requires_grad=True)
        self.weight = nn.Parameter(torch.empty(200, 300))
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)
        self.bias = nn.Parameter(torch.empty(200).uniform_(-(300**-0.5), 300**-0.5))
        self.folded = self.bias * self.gain + self.shift


def fresh(make: type[M], seed: int) -> M:
    torch.manual_seed(seed)
    model = constructed(make, seed, CPU)
    assert isinstance(model, make)
    return model


def test_constants_are_spread_around_what_they_were() -> None:
    state = fresh(Model, 1).state_dict()
    for name, value in (("first.weight", 1.0), ("norm.running_var", 1.0), ("scale", 1e-3)):
        ratio = state[name] / value
        assert 0.5 <= ratio.min() < 0.6 and 1.8 < ratio.max() <= 2.0
        assert abs(float(ratio.log().mean())) < 0.1
    for name in ("first.bias", "norm.bias", "norm.running_mean", "last.bias"):
        assert state[name].min() < 0.0 and state[name].mean() > 0.0
    assert float(state["first.bias"].std()) > 0.2
    assert 0.0 < float(state["last.weight"].norm(dim=1).mean()) < 1.0
    assert not torch.equal(state["first.weight"], state["second.weight"])


def test_the_names_of_what_was_drawn_are_told() -> None:
    names: list[str] = []
    torch.manual_seed(1)
    constructed(Model, 1, CPU, names)
    norms = {f"{norm}.{name}" for norm in ("first", "second", "norm") for name in ("weight", "bias")}
    assert set(names) == norms | {"norm.running_mean", "norm.running_var", "scale", "last.weight"}
    names.clear()
    constructed(Special, 1, CPU, names)
    assert set(names) == {
        f"{norm}.{name}" for norm in ("norm", "head", "tied") for name in ("weight", "bias")
    }


def test_biases_that_torch_draws_no_longer_cancel_and_weights_stay() -> None:
    moved = fresh(Model, 2).linear
    torch.manual_seed(2)
    plain = Model().linear
    assert torch.equal(plain.weight, moved.weight)
    assert torch.allclose(moved.bias, plain.bias + 0.5 * 300**-0.5, atol=1e-7)


def test_the_seed_decides() -> None:
    one, same, other = (fresh(Model, seed).state_dict() for seed in (1, 1, 2))
    floating = [name for name in one if one[name].is_floating_point()]
    assert all(torch.equal(one[name], same[name]) for name in floating)
    assert not any(torch.equal(one[name], other[name]) for name in floating)


def test_other_names_functions_and_orders_draw_the_same_inside_the_constructor() -> None:
    model, renamed = fresh(Model, 3), fresh(Renamed, 3)
    mine, theirs = renamed.state_dict(), model.state_dict()
    pairs = {
        "gain": "first.weight",
        "shift": "first.bias",
        "running_mean": "norm.running_mean",
        "running_var": "norm.running_var",
        "layer_scale": "scale",
        "weight": "linear.weight",
        "bias": "linear.bias",
    }
    assert all(torch.equal(mine[name], theirs[other]) for name, other in pairs.items())
    assert torch.equal(renamed.folded, model.linear.bias * model.first.weight + model.first.bias)


class Special(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.ones(1))
        self.fixed = nn.Parameter(torch.ones(8), requires_grad=False)
        self.whole = nn.Parameter(torch.ones(8, dtype=torch.int64), requires_grad=False)
        self.register_buffer("mask", torch.ones(8))
        self.norm = nn.BatchNorm1d(8)
        self.cell = nn.LSTM(4, 4)
        self.table = nn.Embedding(9, 4, padding_idx=2)
        self.head, self.tied = nn.LayerNorm(8), nn.LayerNorm(8)
        self.tied.weight = self.head.weight
        nn.init.ones_(self.tied.weight)


def test_what_may_be_written_into_a_program_stays() -> None:
    model = fresh(Special, 4)
    state = model.state_dict()
    for name in ("one", "fixed", "whole", "mask", "norm.running_var"):
        assert bool((state[name] == 1).all())
    assert bool((model.table.weight[2] == 0).all())
    assert len(set(model.head.weight.tolist())) == 8 and model.tied.weight is model.head.weight


class Copy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.empty(3).copy_(x)


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.copy = torch.jit.script(Copy())


@pytest.mark.filterwarnings("ignore:.*jit:DeprecationWarning")
def test_a_constructor_may_script_a_module() -> None:
    assert torch.equal(fresh(Scripted, 5).copy(torch.arange(3.0)), torch.arange(3.0))


def test_torchs_functions_come_back_after_an_error() -> None:
    def fail() -> nn.Module:
        nn.LayerNorm(4)
        raise ValueError("its own")

    before = (torch.empty, nn.Parameter.__new__, nn.Module.register_buffer)
    try:
        constructed(fail, 1, CPU)
    except ValueError as error:
        assert str(error) == "its own"
    assert (torch.empty, nn.Parameter.__new__, nn.Module.register_buffer) == before
    assert not torch.Tensor.__dict__.keys() & {"fill_", "zero_", "uniform_"}
    assert bool((nn.LayerNorm(4).weight == 1).all())
