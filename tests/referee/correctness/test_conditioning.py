"""Ill-conditioned inputs: what rounding alone may turn over is excused there, and nothing else."""

from __future__ import annotations

import pytest
import torch

from kernelproof.verifier.referee.correctness.oracle import Expected, Oracle
from tests.referee.problems import CPU, oracle_of, text

ROWS, STEEP, CLOSE = 1 << 18, 2.0**22, 2
"""One row of so many has two scores that are CLOSE roundings apart: which one wins, rounding decides."""
CHOICE = text(
    f"return torch.softmax({STEEP} * x, -1)",
    "drawn()",
    top=f"""
def drawn():
    x = torch.tensor([1.0, 0.5]).repeat({ROWS}, 1)
    x[7, 1] = 1.0 - {CLOSE} * 2.0**-24
    return x
""",
)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    return oracle_of(tmp_path_factory.mktemp("choice"), CHOICE)


def expected(oracle: Oracle, *, forgiving: bool = True) -> Expected:
    return oracle.expected("large", oracle.loaded.draw(0, CPU), 0, forgiving=forgiving)


def rounded_otherwise(oracle: Oracle) -> torch.Tensor:
    """What a program gives that errs by a few roundings more: the other score wins in the close row."""
    [x] = oracle.loaded.draw(0, CPU)
    x[7, 1] += 4 * CLOSE * 2.0**-24
    return torch.softmax(STEEP * x, -1)


def test_what_rounding_decides_is_excused_on_forgiving_inputs(oracle: Oracle) -> None:
    mine = rounded_otherwise(oracle)
    assert oracle.compare(expected(oracle, forgiving=False), [mine]).wrong is not None
    comparison = oracle.compare(expected(oracle), [mine])
    assert comparison.wrong is None
    assert comparison.amplification is not None


@pytest.mark.few(2)
@pytest.mark.parametrize("fault", ["another row", "all rows a little", "not a number", "far too much"])
def test_nothing_else_is(oracle: Oracle, fault: str) -> None:
    mine = rounded_otherwise(oracle)
    if fault == "another row":
        mine[100] = mine[7]
    elif fault == "all rows a little":
        mine *= 1.01
    elif fault == "not a number":
        mine[7, 1] = float("nan")
    else:
        mine[7, 1] = 20.0
    comparison = oracle.compare(expected(oracle), [mine])
    assert comparison.wrong is not None
    assert comparison.amplification is None
