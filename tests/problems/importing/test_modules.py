"""A class of the user's becomes a problem: its source, what it needs of its file, and nothing is run here."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.errors import UsageError
from kernelproof.problems import read_problem
from kernelproof.problems.importing import inputs as said_inputs
from tests.problems.importing.command import held, imports, refusal
from tests.problems.trees import write

LAYERS = '''"""Layers of a user."""
from __future__ import annotations

import os

import torch
import torch.nn.functional as F
from torch import nn

print("imported")
# How much there is of it.
FACTOR = 3; UNUSED = 5
TABLE = {}
TABLE["gain"] = FACTOR
OTHER = []


class Unrelated(nn.Module):
    pass


def scaled(x):
    return x * TABLE["gain"]


class Base(nn.Module):
    """What both have."""


class GatedUnit(Base):
    """A linear layer with a gate."""

    def __init__(self, width: int, act: str = "silu") -> None:
        super().__init__()
        self.linear = nn.Linear(width, 2 * width)
        self.act = act

    def forward(self, x, index):
        a, b = self.linear(scaled(x)).chunk(2, dim=-1)
        return (getattr(F, self.act)(a) * b)[index]


OTHER.append(GatedUnit)


def example():
    return torch.randn(32, 64), torch.randint(0, 32, (FACTOR,))


if __name__ == "__main__":
    GatedUnit(3)
'''
INPUTS = '[[32, 64], {"shape": [16], "dtype": "int64", "high": 32}]'
GATED = ("--init", "[64]", "--inputs", INPUTS)


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    return write(tmp_path / "code" / "layers.py", LAYERS)


def test_the_problem_holds_what_the_class_needs_and_runs(layers: Path, tmp_path: Path) -> None:
    result = imports(f"{layers}:GatedUnit", tmp_path / "mine", *GATED)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("fit     level1/1     gated_unit ")
    problem = read_problem(tmp_path / "mine" / "level1" / "1_gated_unit.py")
    assert problem.signature.init == ("width", "act")
    assert problem.signature.forward == ("x", "index")
    assert problem.summary == "A linear layer with a gate."
    for there in (
        "# How much there is of it.\nFACTOR = 3",
        'TABLE["gain"] = FACTOR',
        "def scaled",
        "class Base",
    ):
        assert there in problem.source
    for absent in ("import os", "Unrelated", "print", "OTHER", "def example", "__main__"):
        assert absent not in problem.source
    assert "return [torch.randn(32, 64), torch.randint(0, 32, (16,))]" in problem.source


@pytest.mark.ci
def test_an_example_function_gives_the_inputs(
    layers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path / "code" / "data.py",
        "import torch\n\nROWS = 32\n\n\ndef rows():\n    return [torch.randn(ROWS, 64), torch.arange(9)]\n",
    )
    monkeypatch.chdir(tmp_path / "code")
    to = tmp_path / "mine"
    first = ("--init", "[64]", "--example", "layers.py:example", "--no-check")
    assert imports("layers:GatedUnit", to, *first).exit_code == 0
    assert "return list(example())" in (to / "level1" / "1_gated_unit.py").read_text()
    options = ("--init", '[64, "relu"]', "--example", "data:rows", "--name", "7_gate", "--json")
    result = imports("layers:GatedUnit", to, *options)
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert (shown["problems"][0]["id"], shown["fitness"]["ok"]) == ("level1/7", True)
    source = Path(shown["problems"][0]["path"]).read_text()
    assert "return list(rows())" in source and source.count("import torch\n") == 1
    assert "ROWS = 32" in source and "return [64, 'relu']" in source
    assert held(to / "level1") == {"1_gated_unit.py", "7_gate.py"}


def test_a_class_in_a_package_is_found_without_importing_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "trace"
    for file in ("kit/__init__.py", "kit/deep/__init__.py"):
        write(tmp_path / file, f"open({str(trace)!r}, 'w')\n")
    write(tmp_path / "kit" / "deep" / "blocks.py", LAYERS)
    monkeypatch.chdir(tmp_path)
    assert imports("kit.deep.blocks:GatedUnit", tmp_path / "mine", *GATED, "--no-check").exit_code == 0
    assert not trace.exists() and "kit" not in sys.modules


@pytest.mark.ci
def test_the_users_code_runs_in_another_process_only(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    spy = f"open({str(trace)!r}, 'a').write(f'{{os.getpid()}}\\n')"
    text = (
        "import os\nfrom torch import nn\n\n\nclass Spy(nn.Module):\n"
        f"    {spy}\n\n    def forward(self, x):\n        return x.sin()\n"
    )
    file = write(tmp_path / "spy.py", text)
    assert imports(f"{file}:Spy", tmp_path / "mine", "--inputs", "[[9, 9]]", "--no-check").exit_code == 0
    assert not trace.exists()
    assert imports(f"{file}:Spy", tmp_path / "other", "--inputs", "[[9, 9]]").exit_code == 0
    assert trace.read_text().split() and str(os.getpid()) not in trace.read_text().split()


@pytest.mark.ci
def test_a_class_that_raises_is_not_written(layers: Path, tmp_path: Path) -> None:
    said = refusal(f"{layers}:GatedUnit", tmp_path / "mine", "--init", "[64]", "--inputs", "[[32, 63], [3]]")
    assert said.startswith(
        "nothing was written, since it does not run: level1/1: forward raised RuntimeError"
    )


@pytest.mark.ci
def test_an_unfit_class_is_written_and_told(tmp_path: Path) -> None:
    text = (
        "import torch\n\n\nclass Zeros(torch.nn.Module):\n    def forward(self, x):\n        return 0 * x\n"
    )
    result = imports(f"{write(tmp_path / 'zeros.py', text)}:Zeros", tmp_path / "mine", "--inputs", "[[9, 9]]")
    assert result.exit_code == 1
    assert "UNFIT" in result.stdout and "zeros: output 0 may as well be zeros" in result.stdout
    assert (tmp_path / "mine" / "level1" / "1_zeros.py").is_file()


def test_a_suite_without_levels_stays_so(layers: Path, tmp_path: Path) -> None:
    write(tmp_path / "mine" / "scale.py")
    options = (*GATED, "--no-check")
    assert "have no levels" in refusal(f"{layers}:GatedUnit", tmp_path / "mine", *options, "--level", "2")
    assert imports(f"{layers}:GatedUnit", tmp_path / "mine", *options).exit_code == 0
    assert held(tmp_path / "mine") == {"scale.py", "gated_unit.py"}
    assert "mine has gated_unit.py already" in refusal(f"{layers}:GatedUnit", tmp_path / "mine", *options)


def test_a_level_of_a_suite_is_no_suite(layers: Path, tmp_path: Path) -> None:
    options = (*GATED, "--no-check")
    assert imports(f"{layers}:GatedUnit", tmp_path / "mine", *options).exit_code == 0
    said = refusal(f"{layers}:GatedUnit", tmp_path / "mine" / "level1", *options, "--name", "other")
    assert said.endswith(f"give the suite: --to {tmp_path / 'mine'}")


MISTAKES = {
    "Nothing": "defines no class Nothing at module level; it has A, B",
    "nn": ":2: nn is imported there from torch; give the file or module that defines it",
    "B": ":4: the module helpers is needed too, and a problem is one file",
    "C": ":17: C() needs k by name, and a problem gives all by position",
    "D": "has a Model of its own that is needed; rename it",
    "F": ":27: the module .helpers is needed too",
}
MISTAKEN = """import torch
from torch import nn

import helpers


class A(nn.Module):
    def forward(self, x):
        return torch.relu(x)


class B(A):
    forward = helpers.forward


class C(nn.Module):
    def __init__(self, *, k):
        super().__init__()


class Model(nn.Module):
    def forward(self, x):
        return x + 1

class F(A):
    def forward(self, x):
        from .helpers import y


class D(Model):
    pass
"""


@pytest.mark.parametrize("name", MISTAKES)
def test_what_cannot_become_a_problem_is_said_in_a_line(name: str, tmp_path: Path) -> None:
    file = write(tmp_path / "code" / "mistaken.py", MISTAKEN)
    write(tmp_path / "code" / "helpers.py", "")
    assert MISTAKES[name] in refusal(f"{file}:{name}", tmp_path / "mine", "--inputs", "[[9]]")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "needs inputs: give --inputs"),
        (("--inputs", "[[3, 3]]", "--example", "a.py:b"), "and not both"),
        (("--inputs", "[3, 3]"), "input 0: 3 is no input; write a shape in brackets"),
        (("--inputs", "[[3"), "--inputs is no JSON at character 4"),
        (("--inputs", '{"shape": [3]}'), "--inputs must be a JSON list"),
        (("--inputs", "[[0]]"), "[0] is no shape"),
        (("--inputs", '[{"shape": [3], "dtype": "int64"}]'), "whole numbers need a high"),
        (("--inputs", '[{"shape": [3], "dtype": "int"}]'), "no dtype 'int'; there are float32"),
        (
            ("--inputs", '[{"shape": [3], "dtype": "uint8", "low": -1, "high": 1}]'),
            "input 0: uint8 takes a low from 0 and a high up to 256",
        ),
        (
            ("--inputs", '[{"shape": [3], "dtype": "int8", "high": 129}]'),
            "input 0: int8 takes a low from -128 and a high up to 128",
        ),
        (
            ("--inputs", '[{"shape": [3], "dtype": "float16", "high": 65505}]'),
            "input 0: float16 takes bounds that lie at most 65504 from 0 and from each other",
        ),
        (("--inputs", '[{"shape": [3], "size": 3}]'), "no 'size' can be said"),
        (
            ("--init", "[3]", "--inputs", "[[3], [3], [3]]"),
            "GatedUnit.forward takes x, index, and --inputs gives 3 arguments",
        ),
        (("--inputs", INPUTS, "--init", "[NaN]"), "--init: NaN is no JSON number"),
        (("--inputs", INPUTS, "--init", "[1, 2, 3]"), "GatedUnit() takes width, act, and --init gives 3"),
        (("--inputs", INPUTS), "GatedUnit() takes width, act, and --init gives 0 arguments"),
        (("--init", "[64]", "--example", "example"), "give FILE.py:FUNCTION or MODULE:FUNCTION"),
        (("--init", "[64]", "--example", "nowhere:f"), "no module 'nowhere' is found here"),
        (("--inputs", INPUTS, "--split", "a"), "--split is not for a class"),
    ],
)
def test_arguments_that_make_no_sense(
    options: tuple[str, ...], said: str, layers: Path, tmp_path: Path
) -> None:
    assert said in refusal(f"{layers}:GatedUnit", tmp_path / "mine", *options)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=4))
def test_every_constructor_argument_comes_out_as_it_went_in(values: list[Any]) -> None:
    try:
        text = said_inputs.init_arguments(json.dumps(values))
    except UsageError:
        assert any(word in json.dumps(values) for word in ("NaN", "Infinity"))
        return
    assert ast.literal_eval(f"[{', '.join(text)}]") == json.loads(json.dumps(values))


EDGES = st.sampled_from(
    [edge + more for ends in said_inputs.INTEGERS.values() for edge in ends for more in (0, 1, 2)]
    + [10**400, float("inf")]
    + [
        sign * largest * part
        for largest in said_inputs.FLOATS.values()
        for sign in (-1, 1)
        for part in (0.5, 1, 1.5)
    ]
)
SHAPES = st.lists(st.integers(1, 4), max_size=3)
ENTRIES = SHAPES | st.fixed_dictionaries(
    {"shape": SHAPES},
    optional={
        "dtype": st.sampled_from([*said_inputs.FLOATS, *said_inputs.INTEGERS, "bool", "odd", []]),
        "low": st.integers(-3, 3) | st.floats(-2, 2) | EDGES,
        "high": st.integers(1, 9) | st.floats(-2, 2) | EDGES,
    },
)


@given(st.lists(ENTRIES, max_size=3))
def test_every_input_that_is_accepted_has_its_shape_and_type(entries: list[Any]) -> None:
    import torch

    try:
        made = said_inputs.inputs(json.dumps(entries))
    except UsageError:
        return
    for entry, text in zip(entries, made, strict=True):
        value = eval(text, {"torch": torch})
        said = entry if isinstance(entry, dict) else {"shape": entry}
        assert list(value.shape) == said["shape"]
        assert value.dtype == getattr(torch, said.get("dtype", "float32"))
        if "low" in said:
            assert bool((value >= said["low"] - 0.02 * max(1, abs(said["low"]))).all())


@pytest.mark.ci
def test_importing_a_class_imports_no_torch_here(layers: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from kernelproof.cli.problems import problems_app;"
        " problems_app(['import', *sys.argv[1:]], standalone_mode=False);"
        " sys.exit('torch' in sys.modules or 'datasets' in sys.modules)"
    )
    words = [f"{layers}:GatedUnit", "--to", str(tmp_path / "mine"), *GATED]
    assert subprocess.run([sys.executable, "-c", code, *words], timeout=120, check=False).returncode == 0
