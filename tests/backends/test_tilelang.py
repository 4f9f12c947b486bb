"""TileLang: compiled for a GPU without one. Nothing here runs a kernel.

What compiles needs `pip install 'kernelproof[tilelang]'` and nvcc, and is skipped without them.
"""

from __future__ import annotations

import shutil
import zipfile
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelproof.backends import backend
from kernelproof.errors import MachineError
from kernelproof.problems import read_problem
from kernelproof.types import BuildState, Problem, Status, VerifySettings
from kernelproof.verifier.build import Builder
from kernelproof.verifier.build.compiler_output import refusal
from kernelproof.verifier.engine.build_stage import Prebuilt, compile_ahead
from kernelproof.verifier.engine.engine import Engine, require_device
from kernelproof.verifier.policy import review
from kernelproof.verifier.sandbox import Group
from tests.backends import triton_programs

TILELANG = backend("tilelang")
SETTINGS = VerifySettings(backend="tilelang", trials=1)
EXAMPLES = Path(__file__).parents[2] / "prompts" / "examples"

RELU = """
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def relu(n, block=256):
    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), out: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=block) as bx:
            for i in T.Parallel(block):
                if bx * block + i < n:
                    out[bx * block + i] = T.max(x[bx * block + i], 0.0)

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        return relu(x.numel())(x.view(-1)).view(x.shape)
"""
VALUE = "T.max(x[bx * block + i], 0.0)"
UNDEFINED = RELU.replace("T.max(", "T.rectified(")
UNKNOWN_TO_NVCC = RELU.replace(VALUE, "T.call_extern('float32', 'no_such', x[bx * block + i])")
"""TileLang lowers it, and nvcc refuses its CUDA."""
CALLED = "relu(x.numel())(x.view(-1)).view(x.shape)"
AFTER_A_VALUE = RELU.replace("x = x.contiguous()", "x = x.contiguous() + x.sum().item()")
OF_ANOTHER_SHAPE = RELU.replace(CALLED, "torch.matmul(relu(x.numel())(x.view(-1)), x)")
"""It fails after its kernel was compiled and called."""
IN_PLACE = RELU.replace("out_idx=[-1]", "").replace(
    CALLED, "y = torch.empty_like(x); relu(x.numel())(x.view(-1), y.view(-1)); return y"
)
IN_PLACE = IN_PLACE.replace("return y = ", "y = ")

installed = pytest.mark.skipif(
    find_spec("tilelang") is None or shutil.which("nvcc") is None, reason="tilelang or nvcc is not here"
)


@pytest.mark.parametrize(
    ("source", "own"),
    [
        (RELU, True),
        (RELU.replace("import tilelang\n", "").replace("import tilelang.", "from tilelang import "), True),
        (RELU.replace("with T.Kernel", "with T.Other"), False),
        (RELU.replace("import tilelang", "import tiles"), False),
        (RELU.replace("@tilelang.jit(out_idx=[-1])", "").replace("@T.prim_func", ""), False),
        ('"""import tilelang; with T.Kernel(1): pass"""', False),
        ("class ModelNew:\n    def forward(self, x):\n        return torch.relu(x)\n", False),
        ("this is no Python", False),
    ],
)
def test_an_own_kernel_is_a_function_that_opens_one(source: str, own: bool, tmp_path: Path) -> None:
    source = source.replace("from tilelang import language as T", "import tilelang.language as T")
    assert TILELANG.holds_own_code(source) is own
    found = [f.rule for f in review(source, triton_programs.problem(tmp_path), "tilelang")]
    assert ("no_inline_kernel" in found) is (not own and source != "this is no Python")


@pytest.mark.parametrize("missing", [True, False])
def test_without_the_package_the_remedy_is_named(missing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nvcc may be here: else its candidates would be judged by an import that fails."""
    monkeypatch.setattr("kernelproof.backends.interface.find_spec", lambda _: None if missing else object())
    monkeypatch.setattr(
        "kernelproof.verifier.engine.engine.find_tools", lambda: SimpleNamespace(nvcc=Path("nvcc"))
    )
    monkeypatch.setattr("kernelproof.verifier.devices.discovery.gpus", lambda: ())
    if missing:
        with pytest.raises(MachineError, match=r"needs the package tilelang and nvcc: .*pip install"):
            require_device("tilelang")
    else:
        require_device("tilelang")


def test_it_is_never_interpreted_and_says_that_it_is_untried() -> None:
    assert not TILELANG.interpretable
    assert "not yet run on a GPU" in TILELANG.untried and "not yet tried" in TILELANG.summary


def test_what_nvcc_says_of_generated_code_is_its_first_error() -> None:
    said = refusal(
        "RuntimeError",
        '#define A\n/tmp/x/kernels.cu(5): error: identifier "f" is undefined\n  f(x);\n  ^\n\n',
    )
    assert said.startswith("a kernel did not compile: ") and 'error: identifier "f" is undefined' in said


@pytest.fixture(scope="module")
def builder(cache: Path) -> Builder:
    return Builder(cache)


def ahead(builder: Builder, source: str, problem: Problem) -> Prebuilt:
    return compile_ahead(builder, source, SETTINGS, Group(), problem)


def kernels(found: Prebuilt) -> list[bytes]:
    """The compiled kernels that the turn left."""
    assert found.first_calls is not None and found.first_calls.library is not None
    with zipfile.ZipFile(found.first_calls.library) as packed:
        return [packed.read(name) for name in packed.namelist() if name.endswith(".cubin")]


@installed
@pytest.mark.ci
@pytest.mark.parametrize("source", [RELU, IN_PLACE], ids=["output made", "output given"])
def test_a_kernel_is_compiled_for_a_gpu_that_is_not_here(
    builder: Builder, tmp_path: Path, source: str
) -> None:
    found = ahead(builder, source, triton_programs.problem(tmp_path))
    assert found.first_calls is not None and found.first_calls.state is BuildState.OK
    assert (found.refused, found.first_calls.log) == ("", ""), "the call ended as it does on a GPU"
    (cubin,) = kernels(found)
    assert cubin.startswith(b"\x7fELF") and b"main_kernel" in cubin


@installed
@pytest.mark.ci
def test_the_example_compiles_and_its_outputs_have_the_references_shape(builder: Builder) -> None:
    """Its size is not known when it is compiled."""
    source = (EXAMPLES / "tilelang.py").read_text()
    found = ahead(builder, source, read_problem(EXAMPLES / "model.py"))
    assert found.first_calls is not None
    assert (found.first_calls.state, found.first_calls.log) == (BuildState.OK, "")
    assert len(kernels(found)) == 1


@installed
@pytest.mark.ci
@pytest.mark.parametrize(
    ("source", "says"),
    [(UNDEFINED, "has no attribute 'rectified'"), (UNKNOWN_TO_NVCC, 'identifier "no_such" is undefined')],
    ids=["TileLang", "nvcc"],
)
def test_a_kernel_that_is_refused_is_a_build_error(
    builder: Builder, tmp_path: Path, source: str, says: str
) -> None:
    found = ahead(builder, source, triton_programs.problem(tmp_path))
    assert found.first_calls is not None and found.first_calls.state is BuildState.ERROR
    assert found.refused.startswith("a kernel did not compile: ") and says in found.refused


@installed
@pytest.mark.ci
@pytest.mark.parametrize(
    ("source", "compiled"), [(AFTER_A_VALUE, 0), (OF_ANOTHER_SHAPE, 1)], ids=["before", "after"]
)
def test_what_fails_for_want_of_a_gpu_says_nothing(
    builder: Builder, tmp_path: Path, source: str, compiled: int
) -> None:
    found = ahead(builder, source, triton_programs.problem(tmp_path))
    assert found.first_calls is not None and found.first_calls.state is BuildState.OK
    assert found.refused == "" and found.first_calls.log
    assert len(kernels(found)) == compiled


@installed
@pytest.mark.ci
@pytest.mark.parametrize(
    ("source", "status", "says"),
    [
        (RELU, Status.BUILT_NOT_RUN, "no CUDA device"),
        (UNDEFINED, Status.BUILD_ERROR, "rectified"),
        (
            "import tilelang\n" + triton_programs.PROBLEM.replace("Model(", "ModelNew("),
            Status.BUILT_NOT_RUN,
            "no CUDA",
        ),
    ],
    ids=["right", "undefined", "no kernel"],
)
def test_nothing_is_correct_without_a_gpu(
    cache: Path, tmp_path: Path, source: str, status: Status, says: str
) -> None:
    with Engine(cache) as engine:
        verdict = engine.verify(source, triton_programs.problem(tmp_path), SETTINGS)
    assert verdict.status is status and says in verdict.reason


@installed
@pytest.mark.ci
def test_kernels_are_told_with_the_file_of_their_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    first: Any = TILELANG.first_call
    file = tmp_path / "candidate.py"
    file.write_text(RELU.replace("out_idx=[-1]", "out_idx=[-1], target=TARGET"))
    module: dict[str, Any] = {"TARGET": {"kind": "cuda", "arch": "sm_90a"}, "__name__": "candidate"}
    exec(compile(file.read_text(), str(file), "exec"), module)
    kept = module["relu"](64)
    assert ("main_kernel", str(file)) in first.inside().made()
    del kept
