"""`import`: a run of KernelBench with its results, stored once, judged here; claims beside the verdicts."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import QUICK
from tests.cli.program import Program

H100 = {"hardware": "NVIDIA H100 80GB HBM3", "device": "cuda:0", "correctness_trials": "(5 / 5)"}


def entry(
    sample: int, *, correct: bool, ms: float = -1.0, compiled: bool = True, **more: Any
) -> dict[str, Any]:
    """What KernelBench's evaluation writes of one sample."""
    stats = {"mean": ms, "std": 0.01, "min": ms, "max": ms, "num_trials": 100} if ms > 0 else {}
    facts = {"sample_id": sample, "compiled": compiled, "correctness": correct, "metadata": H100}
    return {**facts, "runtime": ms, "runtime_stats": stats, **more}


NO_FORWARD = material.right().replace("def forward(self, x)", "def backward(self, x)")
KERNELS = {
    "level_1_problem_1_sample_0_kernel.py": material.right(),
    "level_1_problem_1_sample_1_kernel.py": material.wrong(),
    "level_1_problem_1_sample_2_kernel.py": material.uncompilable(),
    "level_1_problem_1_sample_3_kernel.py": NO_FORWARD,
    "level_1_problem_2_sample_0_kernel.py": material.sines(),
    "generated_kernel_level_1_problem_2_sample_1.py": material.right(),
    "level_1_problem_2_sample_2_response.txt": "I cannot write that kernel.",
}
RESULTS = {
    "1": [
        entry(0, correct=True, ms=0.72, ref_runtime=1.44),
        entry(1, correct=True, ms=0.1, ref_runtime=1.44),
        entry(2, correct=False, compiled=False),
        entry(3, correct=False),
        entry(9, correct=True, ms=0.5),
    ],
    "2": [entry(0, correct=False), entry(1, correct=True, ms=2.0)],
}
STATUSES = {
    "level_1_problem_1_sample_0_kernel.py": Status.CORRECT,
    "level_1_problem_1_sample_1_kernel.py": Status.WRONG_OUTPUT,
    "level_1_problem_1_sample_2_kernel.py": Status.BUILD_ERROR,
    "level_1_problem_1_sample_3_kernel.py": Status.CONTRACT_ERROR,
    "level_1_problem_2_sample_0_kernel.py": Status.CORRECT,
    "generated_kernel_level_1_problem_2_sample_1.py": Status.WRONG_OUTPUT,
    "level_1_problem_2_sample_2_response.txt": Status.NO_CODE,
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run as KernelBench leaves it, with prompts beside the programs."""
    place = tmp_path / "runs" / "tiny-model_level1"
    place.mkdir(parents=True)
    for name, text in KERNELS.items():
        (place / name).write_text(text)
        (place / name.replace("_kernel.py", "_prompt.txt")).touch()
    (place / "eval_results.json").write_text(json.dumps(RESULTS, indent=4))
    (place / "generation_config.yaml").write_text("run_name: tiny-model_level1\n")
    return place


def stored(program: Program) -> dict[str, Status | None]:
    """Each imported file with its status; the same file must not be there twice."""
    found = [(a.reported.source, a.status) for a in program.attempts() if a.reported is not None]
    assert len(found) == len(dict(found)) == len(program.attempts())
    return dict(found)


@pytest.mark.ci
def test_a_run_is_judged_and_its_claims_stand_beside(program: Program, suite: Path, run: Path) -> None:
    command = ("import", run, "--suite", suite, "--model", "tiny-model", *QUICK)
    done = program.run(*command)
    assert f"7 programs from {run} stored in {program.workspace}/db/attempts.sqlite as run 1;" in done.stdout
    assert "1 result in eval_results.json without its program here: problem 1 sample 9" in done.stdout
    assert "leaderboard --claims --model tiny-model" in done.stdout
    assert stored(program) == STATUSES
    assert program.left_after() == {} and program.scratch() == []
    attempts = program.attempts()
    assert {(a.run.kind, a.run.model) for a in attempts} == {("import", "tiny-model")}
    first = next(a for a in attempts if a.reported and a.reported.source.endswith("1_sample_0_kernel.py"))
    assert first.reported is not None and first.reported.raw == RESULTS["1"][0]
    assert first.source == KERNELS["level_1_problem_1_sample_0_kernel.py"]

    again = program.run(*command)
    assert "as run 1, 7 of them before; 6 with a claim" in again.stdout
    assert program.attempts() == attempts  # nothing was stored or verified anew

    board = program.run("leaderboard", "--claims", "--model", "tiny").stdout
    assert "7 programs, 6 with a claim; judged correct 2." in board
    assert "Claimed correct 3: judged correct 1, judged otherwise 2." in board
    assert "Claimed wrong, and judged correct: 1." in board
    rows = list(csv.DictReader(io.StringIO(program.run("leaderboard", "--claims", "--csv").stdout)))
    by_source = {row["source"]: row for row in rows}
    assert {name: row["status"] for name, row in by_source.items()} == STATUSES
    fast = by_source["level_1_problem_1_sample_1_kernel.py"]
    assert (fast["claimed_correct"], fast["correct"]) == ("True", "False")
    assert float(fast["claimed_speedup"]) == pytest.approx(14.4)
    assert fast["claimed_device"] == "NVIDIA H100 80GB HBM3" and fast["speedup"] == ""
    (totals,) = json.loads(program.run("leaderboard", "--claims", "--json").stdout)["totals"]
    assert (totals["programs"], totals["with_claim"], totals["correct"]) == (7, 6, 2)
    assert (totals["claimed_correct"], totals["confirmed"], totals["refuted"]) == (3, 1, 2)
    shown = " ".join(program.run("show", str(first.id)).stdout.split())
    assert "claimed correct, 0.72 ms, 2.00× as fast, NVIDIA H100 80GB HBM3 (of level_1_problem_1" in shown
    usual = program.run("leaderboard", "--kind", "import").stdout
    assert "tiny-model" in usual and "2/7" in usual


@pytest.mark.ci
def test_stored_first_and_judged_later(program: Program, suite: Path, run: Path) -> None:
    command = ("import", run, "--suite", suite, *QUICK)
    done = program.run(*command, "--no-verify")
    assert "6 programs not verified: run the same command again to continue" in done.stdout
    no_program = "level_1_problem_2_sample_2_response.txt"
    assert stored(program) == {**dict.fromkeys(STATUSES), no_program: Status.NO_CODE}
    board = program.run("leaderboard", "--claims").stdout
    assert "Claimed correct 3: judged correct 0, judged otherwise 0, not judged 3." in board

    results = json.loads((run / "eval_results.json").read_text())
    results["2"][0]["correctness"] = True  # somebody mended the claims meanwhile
    (run / "eval_results.json").write_text(json.dumps(results))
    (run / "level_1_problem_1_sample_4_kernel.py").write_text(material.right())
    printed = json.loads(program.run(*command, "--json").stdout.splitlines()[-1])
    assert (printed["new"], printed["with_claim"]) == (1, 6)
    statuses = {**STATUSES, "level_1_problem_1_sample_4_kernel.py": Status.CORRECT}
    assert stored(program) == statuses
    assert sorted(printed["statuses"].values()) == sorted(status.value for status in statuses.values())
    sines = next(a for a in program.attempts() if a.reported and "problem_2_sample_0" in a.reported.source)
    assert sines.reported is not None and sines.reported.correct is True
    assert {a.run.model for a in program.attempts()} == {"tiny-model_level1"}


@pytest.mark.ci
def test_measured_programs_have_both_speedups(program: Program, suite: Path, tmp_path: Path) -> None:
    lines = tmp_path / "given.jsonl"
    claimed = {"correct": True, "runtime_ms": 0.01, "baseline_ms": 10.0, "device": "NVIDIA A100"}
    line = {"problem": "sines", "source": material.sines(), "id": "mine", "claimed": claimed}
    lines.write_text(json.dumps(line) + "\n")
    options = ("--backend", "cpp", "--trials", "1", "--seconds", "0.3", "--rigor", "quick")
    program.run("import", lines, "--suite", suite, "--model", "boaster", *options)
    (result,) = json.loads(program.run("leaderboard", "--claims", "--json").stdout)["results"]
    (attempt,) = program.attempts()
    if attempt.status is not Status.CORRECT:
        pytest.skip(f"this machine is too busy to measure: {attempt.status}")
    assert attempt.verdict is not None and attempt.verdict.verification.measurement is not None
    assert (result["claimed_speedup"], result["claimed_device"]) == (1000.0, "NVIDIA A100")
    assert result["speedup"] == attempt.verdict.verification.measurement.speedup
    board = program.run("leaderboard", "--claims").stdout
    assert "Geometric mean of 1 speedup: 1000× claimed, " in board


@pytest.mark.ci
def test_killed_and_interrupted_it_goes_on(program: Program, suite: Path, run: Path) -> None:
    slow = material.slow_to_compile("import_slow", 2_000_000)
    (run / "level_1_problem_1_sample_8_kernel.py").write_text(slow)
    command = ("import", run, "--suite", suite, *QUICK)
    for end in (signal.SIGKILL, signal.SIGINT):
        process = program.start(*command)
        program.wait_for_process("cc1plus", process)
        time.sleep(0.5)
        os.killpg(process.pid, end)
        process.communicate(timeout=60)
        assert program.left_after() == {}
        assert set(stored(program)) == {*STATUSES, "level_1_problem_1_sample_8_kernel.py"}
    assert process.returncode == 130
    program.run(*command)
    assert stored(program) == {**STATUSES, "level_1_problem_1_sample_8_kernel.py": Status.CORRECT}
    assert all(len(a.verifications) <= 1 for a in program.attempts())


@pytest.mark.ci
def test_two_at_once_store_and_judge_each_program_once(program: Program, suite: Path, run: Path) -> None:
    command = ("import", run, "--suite", suite, *QUICK)
    processes = [program.start(*command) for _ in range(2)]
    outputs = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert stored(program) == STATUSES
    assert all(len(a.verifications) <= 1 for a in program.attempts())


CUDA = """
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
__global__ void relu(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
'''
"""


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="about a machine without a GPU")
def test_cuda_programs_without_a_gpu_are_built_alone_and_that_is_said_first(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    said = "written for cuda, and there is no GPU here: built and not run (built_not_run); --backend cpp"
    for sample in range(2):
        (place / f"level_1_problem_1_sample_{sample}_kernel.py").write_text(CUDA + f"N = {sample}\n")
    done = program.run("import", place, "--suite", suite, "--no-verify")
    assert done.stderr.startswith(said)
    assert {a.run.verify.backend for a in program.attempts()} == {"cuda"}
    for sample in range(2, 5):
        (place / f"level_1_problem_1_sample_{sample}_kernel.py").write_text(material.right())
    for more, backend in (((), "cpp"), (("--backend", "cpp"), "cpp")):
        done = program.run("import", place, "--suite", suite, "--model", "x", "--no-verify", *more)
        assert said not in done.stderr
        assert {a.run.verify.backend for a in program.attempts() if a.run.model == "x"} == {backend}


def test_before_anything_was_imported(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("Kernels are nice.")
    program.run("verify", tmp_path / "a.py", "--problem", "level1/1", *QUICK, code=1)
    assert "No program was imported yet." in program.run("leaderboard", "--claims").stdout
    assert "No imported program passes" in program.run("leaderboard", "--claims", "--model", "x").stdout
