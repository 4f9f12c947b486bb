"""What the benchmarks that gather evidence compute: shares, resumed results, known truths, fakes."""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import coverage, kernelbench_sweep
from benchmarks.coverage import KINDS, Kind, repeated, rows_of, totals, truth_of
from benchmarks.evidence import Book, Share, merged
from benchmarks.fitness_server import FitnessServer
from kernelproof.problems import read_problem
from kernelproof.types import Problem
from kernelproof.types.problem import Unfit
from tests.problems.bad_problems import bad_problem

NESTED = '''"""Two outputs, one of them integers, in a dict."""
import torch
from torch import nn

calls = 0


class Model(nn.Module):
    def forward(self, x):
        global calls
        calls += 1
        return {"sum": x + 1.0, "place": [x.argmax(dim=1), (x > 0.5,)]}


def get_inputs():
    return [torch.rand(6, 5)]


def get_init_inputs():
    return []
'''


@given(st.lists(st.integers()), st.integers(1, 9))
def test_shares_are_all_the_work_and_none_of_it_twice(work: list[int], count: int) -> None:
    parts = [Share(index, count).of(work) for index in range(count)]
    assert sorted(item for part in parts for item in part) == sorted(work)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def options(path: Path, **changes: Any) -> argparse.Namespace:
    given = {"json": path, "fresh": False, "share": Share(0, 1), "rigor": "quick", "repeats": 3}
    return argparse.Namespace(**given | changes)


def test_a_book_goes_on_where_it_stopped_and_refuses_other_options(tmp_path: Path) -> None:
    path = tmp_path / "new" / "result.json"
    first = Book.open(options(path), "coverage")
    first.add({"problem": "a"})
    first.add({"problem": "b"})
    again = Book.open(options(path, repeats=10), "coverage")
    assert again.records == first.records
    with pytest.raises(SystemExit, match="other options"):
        Book.open(options(path, rigor="publish"), "coverage")
    with pytest.raises(SystemExit, match="other options"):
        Book.open(options(path), "kernelbench_sweep")
    assert Book.open(options(path, rigor="publish", fresh=True), "coverage").records == []


def test_results_of_several_processes_are_one(tmp_path: Path) -> None:
    paths = [tmp_path / f"{index}.json" for index in range(2)]
    for index, path in enumerate(paths):
        book = Book.open(options(path), "coverage")
        book.left = index + 1
        book.add({"problem": f"p{index}"})
    whole = merged(paths)
    assert [record["problem"] for record in whole["records"]] == ["p0", "p1"]
    assert whole["left"] == 3
    for path in paths:  # each goes on from all of it
        path.write_text(json.dumps(whole))
        Book.open(options(path), "coverage").add({"problem": f"{path.stem} again"})
    names = ["p0", "p1", "0 again", "1 again"]
    assert [record["problem"] for record in merged(paths)["records"]] == names
    Book.open(options(tmp_path / "killed.json"), "coverage").add({"problem": "p2"})
    assert merged([*paths, tmp_path / "killed.json"])["left"] is None


def load(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(source, "<source>", "exec"), names)
    return names


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_problem_and_candidate_call_the_reference_as_often_as_they_say(kind: Kind, tmp_path: Path) -> None:
    file = tmp_path / "nested.py"
    file.write_text(NESTED)
    problem, candidate = repeated(read_problem(file), kind)
    for source, name, times in (
        (problem.source, "Model", kind.baseline),
        (candidate, "ModelNew", kind.candidate),
    ):
        names = load(source)
        (x,) = names["get_inputs"]()
        result = names[name]()(x)
        assert names["calls"] == times
        assert torch.equal(result["sum"], x + 1.0)


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_the_truth_follows_from_a_first_and_a_further_call(first: float, further: float) -> None:
    for kind in (KINDS["slow"], KINDS["fast"]):
        time = {count: first + (count - 1) * further for count in (kind.baseline, kind.candidate)}
        truth = truth_of(kind, first, [{"baseline_ms": time[kind.baseline]}])
        assert math.isclose(truth, time[kind.baseline] / time[kind.candidate], rel_tol=1e-9)
        assert truth_of(kind, None, [{"baseline_ms": 1.0}]) == kind.nominal
    assert truth_of(KINDS["aa"], first, []) == 1.0


def test_totals_count_every_verification_once(capsys: pytest.CaptureFixture[str]) -> None:
    dice = random.Random(7)
    records: list[dict[str, Any]] = [
        {
            "problem": problem,
            "kind": "aa",
            "status": "correct",
            "reason": "",
            "speedup": 1.0,
            "low": 0.99 if dice.random() < 0.9 else 1.01,
            "high": 1.02,
            "pace": dice.choice(coverage.PACES),
            "aa_spread": 0.001,
            "baseline_ms": milliseconds,
            "seconds": 3.0,
            "disturbed": 0,
        }
        for problem, milliseconds in (("long", 1.0), ("short", 0.001))
        for _ in range(20)
    ]
    refused = {"problem": "long", "kind": "aa", "status": "cheating", "reason": "host_clock", "seconds": 1.0}
    records.append(refused)
    ((kind, count, problems, bad, covered, *paces),) = totals(records, rows_of(records), {"short"})
    assert (kind, count, problems) == ("aa", 21, 1)
    assert str(bad).startswith("1 ")
    held = sum(record["low"] <= 1.0 for record in records[:20])
    assert str(covered).startswith(f"{held} ")
    assert sum(int(str(cell).split()[0]) for cell in paces) == 20
    coverage.show(records)
    printed = capsys.readouterr().out
    assert "below 50 us: short" in printed
    assert "refused: long aa: cheating: host_clock" in printed


def nested(tmp_path: Path) -> Problem:
    file = tmp_path / "nested.py"
    file.write_text(NESTED)
    return read_problem(file)


def test_fakes_have_the_form_of_the_output_and_not_its_values(tmp_path: Path) -> None:
    problem = nested(tmp_path)
    results = {}
    for name in kernelbench_sweep.CANDIDATES:
        names = load(kernelbench_sweep.candidate(problem, "full", name))
        torch.manual_seed(1)
        (x,) = names["get_inputs"]()
        torch.manual_seed(2)
        results[name] = names["ModelNew"]()(x)
    mine = results[kernelbench_sweep.SELF]
    for name, fake in results.items():
        place, (mask,) = fake["place"]
        assert (fake["sum"].shape, fake["sum"].dtype) == (mine["sum"].shape, torch.float32)
        assert (place.dtype, mask.dtype) == (torch.int64, torch.bool)
        assert torch.equal(fake["sum"], mine["sum"]) is (name == kernelbench_sweep.SELF)
    assert not results["zeros"]["sum"].any()
    constant = results["constant"]
    assert constant["sum"].unique().tolist() == pytest.approx([float(mine["sum"].mean())])
    assert constant["place"][0].unique().numel() == constant["place"][1][0].unique().numel() == 1


@pytest.mark.slow
def test_the_fitness_server_outlives_what_problems_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELPROOF_LOCKS", str(tmp_path))
    expected = {
        "crashes": {Unfit.CRASH},
        "raises": {Unfit.ERROR},
        "hangs": {Unfit.TIMEOUT},
        "all_zeros": {Unfit.ZEROS, Unfit.REPLAY, Unfit.UNUSED_INPUT},
    }
    with FitnessServer("full", "cpu", 15.0) as server:
        for name, reasons in expected.items():
            found = server.check(read_problem(bad_problem(name, tmp_path)))
            assert {finding.reason for finding in found.findings} == reasons
        assert server.check(nested(tmp_path)).problem_id == "nested"


def test_the_sweep_tells_what_should_not_be(capsys: pytest.CaptureFixture[str]) -> None:
    def record(problem: str, unfit: list[str], **runs: str) -> dict[str, Any]:
        found = {name.replace("_", " "): {"status": s, "reason": "why"} for name, s in runs.items()}
        findings = [{"reason": reason, "message": ""} for reason in unfit]
        return {"problem": problem, "name": "x", "level": 1, "unfit": findings, "runs": found, "seconds": 1.0}

    records = [
        record("level1/1", [], itself="correct", zeros="wrong_output", another_draw="correct"),
        record("level1/2", [], itself="wrong_output", zeros="wrong_output"),
        record("level1/3", ["replay"], itself="correct"),
    ]
    kernelbench_sweep.show(records)
    printed = capsys.readouterr().out
    assert "level1/1 x, another draw: correct" in printed
    assert "level1/2 x, itself: wrong_output" in printed
    assert "replay (1): level1/3" in printed
    assert printed.splitlines()[1].split() == ["1", "3", "2", "1", "1", "1", "0", "1"]


@pytest.mark.slow
def test_references_are_swept_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = ["--levels", "1", "--select", "level1/9", "--backend", "cpp", "--candidates", "itself"]
    record = tmp_path / "sweep.json"
    with patch.object(sys, "argv", ["sweep", *asked, "--json", str(record)]):
        kernelbench_sweep.main()
    (found,) = json.loads(record.read_text())["records"]
    assert found["unfit"] is None
    assert {name: run["status"] for name, run in found["runs"].items()} == {"itself": "correct"}
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("level1/9")
    assert printed[2].split() == ["1", "1", "0", "0", "1", "0", "0", "0"]  # neither admitted nor unfit
