"""Mutants and twins: what is made of a problem, which are worth a verdict, and what the table says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.mutants import __main__ as command
from benchmarks.mutants.deciding import Decision, decisions
from benchmarks.mutants.recipes import MUTANT, TWIN, Recipe
from benchmarks.mutants.showing import Outcome, outcome, show
from benchmarks.mutants.sizes import execute, extent
from kernelproof.problems import read_problem
from kernelproof.types import Flag, Problem, Status
from kernelproof.verifier.policy import review

MANY_KINDS = '''"""A layer of each kind that a mutation looks for."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.norm = nn.BatchNorm1d(features)
        self.second = nn.Linear(features, features)

    def forward(self, x):
        x = nn.functional.gelu(self.second(self.norm(self.first(x)))) * 0.5
        x = torch.tril(x @ self.second.weight)
        return x + x.sum(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(FEATURES, FEATURES)]


def get_init_inputs():
    return [FEATURES]


FEATURES = 2048
'''


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    file = tmp_path / "many_kinds.py"
    file.write_text(MANY_KINDS)
    return read_problem(file)


def test_each_kind_is_decided_in_float64(problem: Problem) -> None:
    records = decisions(problem, "full")
    decided = {(record["row"], record["name"]): Decision(record["decision"]) for record in records}
    assert all(record["extent"]["shapes"] == ((2048, 2048),) for record in records)

    def of(row: str, start: str = "") -> set[Decision]:
        found = {decision for (r, name), decision in decided.items() if r == row and name.startswith(start)}
        assert found, (row, start)
        return found

    judged = {Decision.JUDGE}
    # The batch norm subtracts the first layer's bias, but its running mean follows it.
    assert of("a bias dropped") == judged
    for row in ("a constant off by 1 %", "eps times ten", "GELU by tanh", "a statistic not updated"):
        assert of(row) == judged
    assert of("the last term of a sum left out") == of("a function left out") == judged
    assert of("a mask off by one") == of("the last element") == of("an input changed") == judged
    assert of("another axis", "axis 1") == judged
    assert of("another axis", "axis 2") == {Decision.NOTHING}
    for name in ("tf32", "half", "bfloat16"):
        assert of(f"operands in {name}") == judged
    assert (
        of("float64, rounded once")
        == of("other orders of summation")
        == of("ATen's decompositions")
        == judged
    )
    assert of("the batch in two parts") == {Decision.UNFAIR}  # the statistics are those of the whole batch


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        ("with_last_zero(forward(*inputs))", [1599]),
        ("with_few_scaled(forward(*inputs), 1.5)", [500, 1500]),
        ("in_float64(self, forward, inputs)", []),
    ],
)
def test_candidates_fit_the_contract_and_do_what_they_say(
    problem: Problem, call: str, changed: list[int]
) -> None:
    source = Recipe(MUTANT, "a row", "a name", call).source(problem, {"FEATURES": 40})
    assert not [hit for hit in review(source, problem, "cpp") if hit.status is Status.CONTRACT_ERROR]
    names = execute(source)
    torch.manual_seed(0)
    model, x = names["ModelNew"](40), torch.rand(40, 40) + 1
    with torch.no_grad():
        true, seen = names["Model"].forward(model, x), model(x)
    assert seen.dtype == true.dtype == torch.float32
    assert (~torch.isclose(seen, true, 1e-4, 1e-5)).flatten().nonzero().flatten().tolist() == changed


def record(role: str, status: str | None, decision: str = "judge", **more: Any) -> dict[str, Any]:
    verdict = status and {"status": status, "reason": "why", "flags": [], "worst": None} | more
    named = {"suite": "s", "problem": "p", "title": "t", "row": "a row", "name": "n", "why": ""}
    return named | {"role": role, "decision": decision} | ({"verdict": verdict} if verdict else {})


def test_outcomes_and_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    flags = [Flag.STATE_NOT_UPDATED.value]
    assert outcome(record(MUTANT, "wrong_output")) is Outcome.REFUSED
    assert outcome(record(MUTANT, "correct", flags=flags)) is Outcome.FLAGGED
    coarse, other = Flag.PRECISION_NOT_SEPARABLE.value, Flag.SHAPE_SPECIALISED.value
    assert outcome(record(MUTANT, "correct", flags=[coarse, other])) is Outcome.FLAGGED
    assert outcome(record(MUTANT, "correct", flags=[other])) is Outcome.ACCEPTED
    assert outcome(record(TWIN, "correct", flags=flags)) is Outcome.ACCEPTED
    assert outcome(record(TWIN, "out_of_memory")) is Outcome.LEFT_OUT
    assert outcome(record(MUTANT, None, "equivalent")) is Outcome.EQUIVALENT
    assert outcome(record(MUTANT, None)) is Outcome.NOT_REACHED
    good = [record(MUTANT, "wrong_output"), record(MUTANT, "correct"), record(TWIN, "correct")]
    assert show(good)
    assert "mutants that survived: 1" in capsys.readouterr().out
    assert not show([*good, record(TWIN, "wrong_output")])
    assert not show([*good, record(TWIN, "cheating")])
    assert "twins that were refused or accused: 1" in capsys.readouterr().out


@pytest.mark.ci
def test_a_shard_of_our_problems_on_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [tmp_path / f"part{index}.json" for index in range(2)]
    common = [
        "mutants",
        "--backend",
        "cpp",
        "--size",
        "small",
        "--select",
        "level2/9",
        "--plan",
        str(tmp_path / "plan"),
    ]
    for index, part in enumerate(parts):
        monkeypatch.setattr("sys.argv", [*common, "--share", f"{index}/6", "--json", str(part)])
        assert command.main() == 0
    records = [each for part in parts for each in json.loads(part.read_text())["records"]]
    assert len(records) == 8
    ends = {outcome(each) for each in records if each["role"] == MUTANT}
    assert ends == {Outcome.REFUSED}
    assert {outcome(each) for each in records if each["role"] == TWIN} == {Outcome.ACCEPTED}
    monkeypatch.setattr("sys.argv", ["mutants", "--add", *map(str, parts)])
    assert command.main() == 0


def test_problems_are_judged_at_sizes_of_so_many_elements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command halves in processes of their own, keeps the texts, and judges those."""
    suite, plan = tmp_path / "suite.py", tmp_path / "plan.json"
    suite.write_text(MANY_KINDS.replace("FEATURES = 2048", "FEATURES = 256"))
    words = [sys.executable, "-m", "benchmarks.mutants", "--suite", str(suite), "--plan", str(plan), "--list"]
    done = subprocess.run([*words, "--size", "full", "--elements", "20000"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (kept,) = json.loads(plan.with_suffix(".20000.json").read_text())["full"].values()
    there = extent(kept["source"])
    assert there is not None and there.elements == kept["extent"]["elements"] <= 20_000
    monkeypatch.setattr("sys.argv", ["mutants", "--suite", str(suite), "--elements", "9"])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert "name a file" in capsys.readouterr().err
