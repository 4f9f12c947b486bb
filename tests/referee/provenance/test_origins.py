"""A kernel is the candidate's own only where something shows it: a library that was built, or its source."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kernelproof.types import Build, BuildState, Origin
from kernelproof.verifier.referee.provenance.origins import Evidence, author, evidence, origin
from tests.referee.corpus import members

NVRTC = """
import torch
# reduction_sum_kernel is only spoken of here
WIDTH = 4
kernel = torch.cuda._compile_kernel('extern "C" __global__ void scale_rows(float* x) {}', "scale_rows")
other = torch.cuda._compile_kernel(template, f"gather{WIDTH}_columns_{WIDTH}")
"""
BUILDS_ONLY = """
from torch.utils.cpp_extension import load_inline
SOURCE = "__global__ void fused_mul_add(float* x) {}  __global__ void reduction_prod_kernel(float* x) {}"
try:
    extension = load_inline("own", "", SOURCE, functions=["f"])
except RuntimeError:
    extension = None
"""


def built(library: Path, state: BuildState = BuildState.OK) -> Build:
    return Build(key="0" * 64, state=state, name="own", library=str(library))


@pytest.mark.parametrize(
    "name",
    ["reduction_prod_kernel", "fused_mul_add", "i0_vectorized4_kernel", "kernel", "scale(float*)", "mystery"],
)
def test_what_nothing_shows_is_not_its_own(name: str, tmp_path: Path) -> None:
    failed = built(tmp_path / "own.so", BuildState.ERROR)
    for source in ("", BUILDS_ONLY):
        assert origin(name, evidence([failed], source)) is Origin.UNKNOWN


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("scale_rows", Origin.JIT),
        ("scale_rows(float*)", Origin.JIT),
        ("gather4_columns_4", Origin.JIT),
        ("reduction_sum_kernel", Origin.UNKNOWN),
        ("scale_vectorized4_kernel", Origin.UNKNOWN),
        ("mystery", Origin.UNKNOWN),
    ],
)
def test_a_source_that_compiles_has_the_kernels_that_it_names(name: str, expected: Origin) -> None:
    assert origin(name, Evidence(source=NVRTC)) is expected


def test_a_word_in_a_comment_is_no_way_to_kernels() -> None:
    assert not Evidence(source="# nvrtc, cuModuleLoadData\nimport torch\n").compiles
    assert Evidence(source="import ctypes\nctypes.CDLL('libnvrtc.so.12')\n").compiles
    assert Evidence([b"\0cuModuleLoadData\0"]).compiles


@pytest.mark.parametrize(
    ("member", "kernel"),
    [("cuda_relu_nvrtc", "relu"), ("cuda_gelu_ptx_through_driver", "gelu_tanh_free")],
)
def test_kernels_of_honest_candidates_that_build_nothing_are_their_own(member: str, kernel: str) -> None:
    (source,) = (m.source for m in members("cuda") if m.name == member)
    assert origin(kernel, Evidence(source=source)) is Origin.JIT


def test_what_was_built_and_cannot_be_read_is_not_held_against_it(tmp_path: Path) -> None:
    assert origin("mine(float*)", evidence([built(tmp_path / "gone.so")], "")) is Origin.JIT


def test_a_name_too_long_to_be_taken_apart_is_looked_for_as_it_is() -> None:
    name = "_ZN4mine8elementsI" + "N4mine4typeE" * 12
    assert origin(name[:200], Evidence([b"\0" + name.encode() + b"\0"])) is Origin.OWN
    assert origin(name[:200], Evidence([b"\0"])) is Origin.UNKNOWN
    assert origin("_ZN2at6native29vectorized_elementwise_kernelILi4E", Evidence()) is Origin.LIBRARY


TORCHS_TEMPLATE = """
namespace at::native {
template <int width, typename F> void vectorized_elementwise_kernel(int, F) {}
}
struct Mine {};
template void at::native::vectorized_elementwise_kernel<4, Mine>(int, Mine);
"""


def test_a_template_of_torchs_headers_runs_the_candidates_own_function(tmp_path: Path) -> None:
    source, library = tmp_path / "own.cpp", tmp_path / "own.so"
    source.write_text(TORCHS_TEMPLATE)
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None
    subprocess.run([compiler, "-std=c++17", "-shared", "-fPIC", "-o", library, source], check=True)
    shown = evidence([built(library)], "")
    kernel = "void at::native::vectorized_elementwise_kernel<4, {}>(int, {})"
    assert origin(kernel.format("Mine", "Mine"), shown) is Origin.OWN
    assert origin(kernel.format("Theirs", "Theirs"), shown) is Origin.LIBRARY
    assert origin(kernel.format("Mine", "Mine"), shown, by_torch=True) is Origin.LIBRARY


TRITON = """
import torch, triton
@triton.jit
def triton_poi_fused_relu_0(x, y, n): pass
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return WORK
"""


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        ("triton_poi_fused_relu_0[(4,)](x, x, 4)", Origin.JIT),
        ("torch.compile(torch.relu)(x)", Origin.INDUCTOR),
        ("torch._inductor.compile(graph, [x])(x)", Origin.INDUCTOR),
    ],
)
def test_a_kernel_named_as_inductor_names_them_is_its_own_unless_it_asks_inductor(
    work: str, expected: Origin
) -> None:
    shown = Evidence(source=TRITON.replace("WORK", work))
    assert origin("triton_poi_fused_relu_0", shown) is expected


def test_a_built_kernel_of_inductors_name_hides_none_of_inductors() -> None:
    image = b"\0triton_poi_fused_relu_0\0"
    assert origin("triton_poi_fused_relu_0", Evidence([image], "x = 1")) is Origin.OWN
    source = "from torch import nn, compile as c"
    assert origin("triton_poi_fused_relu_0", Evidence([image], source)) is Origin.INDUCTOR


def test_a_docstring_that_names_torch_compile_asks_nothing() -> None:
    said = '"""Named as torch.compile names it, and faster."""\n' + TRITON.replace("WORK", "x")
    assert origin("triton_poi_fused_relu_0", Evidence(source=said)) is Origin.JIT
    told = said + 'run = eval("torch.compile")\n'
    assert origin("triton_poi_fused_relu_0", Evidence(source=told)) is Origin.INDUCTOR


def test_the_one_name_that_inductor_gives_to_all_kernels_is_inductors() -> None:
    source = "import torch, triton\ndef triton_(x): pass\n"
    assert origin("triton_", Evidence(source=source)) is Origin.JIT
    assert origin("triton_", Evidence(source=source + "f = torch.compile(f)\n")) is Origin.INDUCTOR


@pytest.mark.parametrize(
    ("file", "whose"),
    [
        ("/tmp/job/candidate.py", None),
        ("/tmp/torchinductor_nobody/ab/cab.py", Origin.INDUCTOR),
        ("/venv/lib/python3.12/site-packages/torch/sparse/_triton_ops.py", Origin.LIBRARY),
        ("/venv/lib/python3.12/site-packages/triton/language/standard.py", None),
    ],
)
def test_the_author_of_a_kernel_is_told_by_its_file(file: str, whose: Origin | None) -> None:
    """`tl.softmax` is a function for kernels to call: a kernel called `softmax` is still the candidate's."""
    assert author(file) is whose


def test_an_own_triton_kernel_stays_its_own_beside_torch_compile() -> None:
    source = 'import torch, triton\ndef triton_relu(x): "As fast as torch.compile."\n'
    assert origin("triton_relu", Evidence(source=source)) is Origin.JIT
