"""The rounds of a measurement: how many calls a block holds, and who comes first."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kernelproof.types import Measurement
from kernelproof.verifier.referee.timing.clock import Round
from kernelproof.verifier.referee.timing.rounds import Blocks
from kernelproof.verifier.referee.timing.stopping import StoppingRule
from kernelproof.verifier.workers.shared_memory import MAX_SLOTS
from tests.referee.court import Court
from tests.referee.problems import as_candidate, text, written

pytestmark = pytest.mark.ci

PROBLEM = text(
    "called or (called.append(True), time.sleep(0.5)); return torch.relu(x)",
    "torch.randn(1000)",
    top="import time\n\ncalled = []",
)
CANDIDATE = as_candidate(text("return torch.clamp(x, min=0)", ""))
IDLES_IN_DECOYS = CANDIDATE.replace("import torch\n", "import time\n\nimport torch\n", 1).replace(
    "        return", "        if x[:64].abs().max() > 20:\n            time.sleep(0.2)\n        return"
)


def measured(
    problem: str, seconds: float, court: Court, folder: Path, source: str = CANDIDATE
) -> Measurement:
    problem_file = written(folder, problem)
    found = court.verdict(source, problem_file, measure=True, measure_seconds=seconds).measurement
    assert found is not None
    return found


def test_a_process_whose_first_call_takes_long_has_blocks_no_shorter(court: Court, tmp_path: Path) -> None:
    """What is loaded and chosen then (a kernel's code, a library's algorithm) is no measure of the others:
    blocks held four to seven calls for it on an H200 where sixteen fit, and the outer clock was in doubt."""
    calls = measured(PROBLEM, 1, court, tmp_path).calls
    assert max(calls) == MAX_SLOTS
    assert min(calls) >= 2


def test_each_side_is_first_in_one_of_two_rounds(court: Court, tmp_path: Path) -> None:
    """The second side has a warmer device, and other neighbours in time."""
    order = measured(PROBLEM.replace("0.5", "0"), 0.5, court, tmp_path).order
    pairs = list(zip(order[::2], order[1::2], strict=True))
    assert len(pairs) >= 2
    assert all(first != second for first, second in pairs)


@pytest.mark.slow
def test_time_that_is_wasted_in_decoys_leaves_no_fewer_rounds(court: Court, tmp_path: Path) -> None:
    """A decoy's times do not count, and its inputs are easily told: there it costs nothing to idle."""
    problem = PROBLEM.replace("0.5", "0").replace("1000", "1000000")
    assert len(measured(problem, 0.4, court, tmp_path, IDLES_IN_DECOYS).calls) >= StoppingRule.min_rounds


def test_a_share_of_the_usual_calls_is_one_of_short_blocks_too() -> None:
    """Rigor `quick` makes its rounds of half the calls on a GPU."""
    for ms, usual in ((20.0, 3), (1.0, MAX_SLOTS), (0.1, 80)):
        whole, half = Blocks(96, 60.0, Random(1)), Blocks(96, 60.0, Random(1), share=0.5)
        last = Round("BC", [ms], [ms], ms, ms)
        assert whole.wanted(last) == usual
        assert half.wanted(last) == max(3, usual // 2)
        half.hold(half.wanted(last))
        assert half.most == half.wanted(last) > half.counts[0]
