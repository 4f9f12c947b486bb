"""Problems as the referee loads them: apart from each other, from seeds, with their own errors named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelproof.errors import UsageError
from kernelproof.problems import read_problem
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError, truth, upcast

CPU = torch.device("cpu")
HEAD = "import torch\nfrom torch import nn\n"
TAIL = "def get_init_inputs():\n    return []\n"
DOUBLE = HEAD + (
    "N = 4\n"
    "SIZES = {'full': {'N': 4}, 'small': {'N': 2}}\n"
    "class Model(nn.Module):\n"
    "    def forward(self, x):\n"
    "        return FACTOR * x\n"
    "FACTOR = 2\n"
    "def get_inputs():\n"
    "    return [torch.randn(N)]\n"
)


class Writer:
    """Loads problems from the texts a test gives."""

    def __init__(self, place: Path) -> None:
        self._place, self._count = place, 0

    def __call__(self, text: str, size: str = "full") -> LoadedProblem:
        self._count += 1
        path = self._place / f"{self._count}_problem.py"
        path.write_text(text + TAIL)
        return LoadedProblem(read_problem(path), size)


@pytest.fixture
def load(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


def output(loaded: LoadedProblem, seed: int = 1) -> torch.Tensor:
    model = loaded.construct(seed, CPU)
    value = loaded.run(model, loaded.draw(seed, CPU), seed)
    assert isinstance(value, torch.Tensor)
    return value


def test_problems_with_the_same_names_do_not_touch_each_other(load: Writer) -> None:
    first = load(DOUBLE)
    second = load(DOUBLE.replace("FACTOR = 2", "FACTOR = 300").replace("N = 4", "N = 7"))
    assert output(first).tolist() == (2 * first.draw(1, CPU)[0]).tolist()
    assert output(second).tolist() == (300 * second.draw(1, CPU)[0]).tolist()


def test_sizes_replace_module_level_names(load: Writer) -> None:
    assert load(DOUBLE, "full").draw(1, CPU)[0].shape == (4,)
    assert load(DOUBLE, "small").draw(1, CPU)[0].shape == (2,)


def test_an_unknown_size_names_those_there_are(load: Writer) -> None:
    with pytest.raises(UsageError, match=r"no size 'huge'.*full, small"):
        load(DOUBLE, "huge")


def test_inputs_and_weights_follow_from_their_seeds(load: Writer) -> None:
    loaded = load(
        DOUBLE.replace("2\n", "2\n", 1)
        .replace("FACTOR * x", "self.w * x")
        .replace(
            "    def forward",
            "    def __init__(self):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.randn(1))\n    def forward",
        )
    )
    assert torch.equal(loaded.draw(5, CPU)[0], loaded.draw(5, CPU)[0])
    assert not torch.equal(loaded.draw(5, CPU)[0], loaded.draw(6, CPU)[0])
    assert torch.equal(loaded.construct(5, CPU).w, loaded.construct(5, CPU).w)
    assert not torch.equal(loaded.construct(5, CPU).w, loaded.construct(6, CPU).w)


def test_integers_and_booleans_keep_their_types(load: Writer) -> None:
    loaded = load(
        DOUBLE.replace("[torch.randn(N)]", "[torch.randint(0, 9, (N,)), torch.ones(N, dtype=torch.bool), 3]")
    )
    integers, booleans, number = loaded.draw(1, CPU)
    assert (integers.dtype, booleans.dtype, number) == (torch.int64, torch.bool, 3)
    assert [t.dtype for t in upcast([integers, booleans])] == [torch.int64, torch.bool]


def test_the_mode_is_what_the_problem_sets(load: Writer) -> None:
    init = "    def __init__(self):\n        super().__init__()\n        self.eval()\n    def forward"
    assert load(DOUBLE).construct(1, CPU).training
    assert not load(DOUBLE.replace("    def forward", init)).construct(1, CPU).training


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("N = 4\n", "N = 4\nraise RuntimeError('at import')\n", "import raised RuntimeError: at import"),
        ("return [torch", "return [1 / 0, torch", "get_inputs raised ZeroDivisionError"),
        ("return FACTOR * x", "return x.nothing", "forward raised AttributeError"),
        ("class Model(nn.Module)", "class Model", "no torch.nn.Module"),
    ],
)
def test_a_problem_that_fails_is_named_with_the_place(
    load: Writer, before: str, after: str, what: str
) -> None:
    with pytest.raises(ProblemError, match=what):
        output(load(DOUBLE.replace(before, after)))


def test_the_truth_is_float64_and_leaves_model_and_inputs_alone(load: Writer) -> None:
    loaded = load(DOUBLE)
    model, arguments = loaded.construct(1, CPU), loaded.draw(1, CPU)
    found = truth(loaded, model, arguments, 1)
    assert found is not None
    assert found.dtype == torch.float64
    assert arguments[0].dtype == torch.float32
    assert torch.equal(found, 2 * arguments[0].double())


@pytest.mark.parametrize("body", ["x.float() @ x.float()", "torch.ones(4) @ x", "FACTOR * x.half().float()"])
def test_there_is_no_truth_where_the_problem_fixes_a_dtype(load: Writer, body: str) -> None:
    loaded = load(DOUBLE.replace("FACTOR * x", body))
    assert truth(loaded, loaded.construct(1, CPU), loaded.draw(1, CPU), 1) is None
