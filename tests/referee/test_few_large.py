"""Where few elements are large, an algorithm that is stable in norm only may err in others."""

from __future__ import annotations

import pytest
import torch

from kernelproof.verifier.referee.correctness import tolerance
from kernelproof.verifier.referee.correctness.oracle import Expected, Oracle
from tests.referee.corpus import CORPUS
from tests.referee.problems import CPU, oracle_of, text

SIDE, SPIKE = 512, 500.0
PRODUCT = text(
    "return a @ b",
    "*drawn()",
    names="a, b",
    top=f"""
def drawn():
    a, b = torch.randn({SIDE}, {SIDE}), torch.randn({SIDE}, {SIDE})
    for n in range(8):  # they meet in a product of Strassen's, not in the result
        a[17 * n + 1, 3 * n] = {SPIKE}
        b[{SIDE // 2} + 3 * n, {SIDE // 2} + 13 * n + 3] = -{SPIKE}
    return a, b
""",
)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    return oracle_of(tmp_path_factory.mktemp("product"), PRODUCT)


def expected(oracle: Oracle, name: str) -> Expected:
    return oracle.expected(name, oracle.loaded.draw(3, CPU), 0, forgiving=name != "drawn")


def strassen(oracle: Oracle) -> torch.Tensor:
    space: dict[str, type[torch.nn.Module]] = {}
    exec((CORPUS / "honest" / "matmul_strassen.py").read_text(), space)
    value = space["ModelNew"]()(*oracle.loaded.draw(3, CPU))
    assert isinstance(value, torch.Tensor)
    return value


def test_who_is_stable_in_norm_is_right_on_spikes(oracle: Oracle) -> None:
    mine, spikes = strassen(oracle), expected(oracle, "spikes")
    found = oracle.compare(spikes, [mine])
    assert found.wrong is None
    assert found.excused is None
    far = float((mine.double() - spikes.sticks[0].exact.view_as(mine)).abs().max())
    largest = float(spikes.sticks[0].exact.abs().max())
    assert far > 100 * 2.0**-24 * largest  # no small multiple of the largest element's roundoff
    for name in ("drawn", "large"):
        assert oracle.compare(expected(oracle, name), [mine]).wrong is not None


@pytest.mark.parametrize("fault", ["spikes left out", "one element", "rounded operands", "rounded result"])
def test_nothing_else_is(oracle: Oracle, fault: str) -> None:
    a, b = oracle.loaded.draw(3, CPU)
    mine = a @ b
    if fault == "spikes left out":
        mine = a.clamp(-100, 100) @ b
    elif fault == "one element":
        mine[100, 100] += 0.5
    elif fault == "rounded operands":
        mine = a.half().float() @ b.half().float()
    else:
        mine = mine.half().float()
    assert oracle.compare(expected(oracle, "spikes"), [mine]).wrong is not None


@pytest.mark.parametrize(
    ("dtype", "roundoff"),
    [(torch.float32, 2.0**-24), (torch.float64, 2.0**-53), (torch.bfloat16, 0.0), (torch.int64, 0.0)],
)
def test_the_slack_is_in_roundoffs_of_the_output(dtype: torch.dtype, roundoff: float) -> None:
    assert tolerance.few_large_slack(dtype) == tolerance.NORMWISE_ROUNDOFFS * roundoff
