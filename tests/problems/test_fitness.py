"""Bad problems are found for the right reason; good ones are not accused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from kernelproof.errors import MachineError, UsageError
from kernelproof.problems import check_problem, read_problem
from kernelproof.types.problem import Unfit
from kernelproof.verifier.devices import locks
from kernelproof.verifier.referee.environment import describe_environment
from kernelproof.verifier.referee.fitness import examine
from tests.problems.bad_problems import NAMES, bad_problem
from tests.problems.trees import scale_source, write

CPU = torch.device("cpu")

CONSTANT_OUTPUT = {Unfit.REPLAY, Unfit.UNUSED_INPUT}
IN_PROCESS = {
    "all_zeros": CONSTANT_OUTPUT | {Unfit.ZEROS},
    "softmax_of_one": CONSTANT_OUTPUT | {Unfit.CONSTANT},
    "same_class": CONSTANT_OUTPUT | {Unfit.ZEROS},
    "weights_only": CONSTANT_OUTPUT,
    "second_is_weights": {Unfit.REPLAY},
    "fixed_inputs": {Unfit.REPLAY},
    "unused_input": {Unfit.UNUSED_INPUT},
    "unused_constant_input": {Unfit.UNUSED_INPUT},
    "unused_weight": {Unfit.DEAD_WEIGHT},
    "bias_before_softmax": {Unfit.DEAD_WEIGHT},
    "cancellation": {Unfit.SCALED},
    "rounding_noise": {Unfit.NOISE},
    "few_huge": {Unfit.MOSTLY_ZEROS},
    "means_of_positive": {Unfit.PERTURBED},
    "dropout": {Unfit.NONDETERMINISTIC},
    "stateful": {Unfit.NONDETERMINISTIC},
    "unstable_weights": {Unfit.UNSTABLE_WEIGHTS},
    "mutated_input": {Unfit.MUTATED_INPUT},
    "not_finite": {Unfit.NON_FINITE},
    "no_output": {Unfit.NO_OUTPUT},
    "empty_output": {Unfit.NO_OUTPUT},
    "raises": {Unfit.ERROR},
}
IN_A_PROCESS = {
    "too_big": Unfit.OUT_OF_MEMORY,
    "crashes": Unfit.CRASH,
    "leaves": Unfit.CRASH,
    "hangs": Unfit.TIMEOUT,
}


def test_every_bad_problem_is_in_a_table() -> None:
    assert IN_PROCESS.keys() | IN_A_PROCESS.keys() == NAMES


@pytest.mark.parametrize("name", IN_PROCESS)
def test_a_bad_problem_is_found_for_its_reason(name: str, tmp_path: Path) -> None:
    fitness = examine(read_problem(bad_problem(name, tmp_path)), "full", CPU)
    assert not fitness.ok
    assert {finding.reason for finding in fitness.findings} == IN_PROCESS[name]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "hangs" else []) for name in IN_A_PROCESS]
)
def test_what_ends_the_process_is_a_finding(name: str, tmp_path: Path) -> None:
    problem = read_problem(bad_problem(name, tmp_path))
    fitness = check_problem(problem, size="full", time_limit=60.0 if name != "hangs" else 5.0)
    assert [finding.reason for finding in fitness.findings] == [IN_A_PROCESS[name]]


def test_the_finding_says_which_output_and_which_input(tmp_path: Path) -> None:
    (replay,) = examine(read_problem(bad_problem("second_is_weights", tmp_path)), "full", CPU).findings
    assert replay.figures == {"output": 1}
    (unused,) = examine(read_problem(bad_problem("unused_input", tmp_path)), "full", CPU).findings
    assert unused.figures == {"input": 1}


@pytest.mark.ci
def test_what_a_problem_prints_is_not_taken_for_the_record(tmp_path: Path) -> None:
    text = scale_source() + "\nprint('{\"problem_id\": 1}')\n"
    assert check_problem(read_problem(write(tmp_path / "loud.py", text)), size="full").ok


@pytest.mark.ci
def test_devices_and_sizes_that_are_not_there(tmp_path: Path) -> None:
    problem = read_problem(write(tmp_path / "a.py"))
    with pytest.raises(UsageError, match="no size 'small'; it has full"):
        check_problem(problem, size="small")
    with pytest.raises(UsageError, match="no device 'gpu'"):
        check_problem(problem, size="full", device="gpu")
    with pytest.raises(MachineError, match="no device cuda:99"):
        check_problem(problem, size="full", device="cuda:99")


@pytest.mark.gpu
def test_a_gpu_on_which_another_process_measures_is_waited_for(tmp_path: Path) -> None:
    """And the time for that is not the problem's."""
    gpu = describe_environment(torch.device("cuda")).gpu
    assert gpu is not None
    hold, waited = locks.take(gpu.uuid), []

    def later(text: str) -> None:
        waited.append(text)
        time.sleep(4)
        hold.release()

    problem = read_problem(write(tmp_path / "scale.py"))
    assert check_problem(problem, size="full", device="cuda", time_limit=3.0, on_wait=later).ok
    assert len(waited) == 1 and waited[0].startswith(f"waiting for {gpu.uuid}")


@pytest.mark.gpu
@pytest.mark.parametrize(("columns", "dtype"), [((1 << 16) + 1, "half"), (65535, "float")])
def test_outputs_too_big_to_be_sorted_are_examined(tmp_path: Path, columns: int, dtype: str) -> None:
    """More elements than torch sorts; and 8 GB of them, for which the memory of a GPU does not suffice."""
    drawn = f"torch.rand({1 << 15}, {columns}, dtype=torch.{dtype})"
    source = scale_source().replace("torch.randn(ROWS, 5)", drawn)
    assert drawn in source
    assert check_problem(read_problem(write(tmp_path / "big.py", source)), size="full", device="cuda").ok
