"""Real torch extensions: compiled in the sandbox, imported by a real torch, called."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelproof.types import Build, BuildRequest, BuildState
from kernelproof.verifier.build import Builder
from tests.compile.calling import call

pytestmark = pytest.mark.ci

EXTENSION = BuildRequest(
    name="scale_ext",
    cpp_sources=(
        "torch::Tensor doubled(torch::Tensor x);",
        "torch::Tensor doubled(torch::Tensor x) {\n"
        '  TORCH_CHECK(x.dim() == 1, "one dimension, please");\n  return x * 2;\n}\n'
        "int answer() { return ANSWER; }",
    ),
    functions={"doubled": "Twice the input.", "answer": "answer"},
    extra_cflags=("-O1 -DANSWER=42",),
)


@pytest.fixture(scope="module")
def built(builder: Builder) -> Build:
    return builder.build(EXTENSION)


def test_the_module_computes_and_documents_what_its_source_says(built: Build) -> None:
    assert built.state is BuildState.OK, built.log
    printed = call(
        built, "print(module.doubled(torch.arange(3.)).tolist(), module.answer(), module.__name__)"
    )
    assert printed == "[0.0, 2.0, 4.0] 42 scale_ext"
    assert "Twice the input." in call(built, "print(module.doubled.__doc__)")


def test_a_torch_error_reaches_python_with_its_message(built: Build) -> None:
    code = """
try:
    module.doubled(torch.zeros(2, 2))
except RuntimeError as error:
    print(error)
"""
    assert "one dimension, please" in call(built, code)


def test_a_second_build_compiles_nothing(builder: Builder, built: Build) -> None:
    assert built.library is not None
    before = Path(built.library).stat()
    again = builder.build(EXTENSION)
    after = Path(built.library).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert again == built.model_copy(update={"cached": True})
    assert builder.kept(builder.key(EXTENSION)) == again


def test_the_record_of_a_build_says_how_it_was_made(built: Build) -> None:
    compile_command, link_command = built.commands
    assert "-DTORCH_EXTENSION_NAME=scale_ext" in compile_command and "-DANSWER=42" in compile_command
    assert "-ltorch_python" in link_command
    assert built.duration_s > 1.0


def test_a_function_without_a_prototype_is_a_compile_error_that_names_it(builder: Builder) -> None:
    request = BuildRequest(name="no_prototype", functions={"forgotten_kernel": "forgotten_kernel"})
    build = builder.build(request)
    assert build.state is BuildState.ERROR
    assert re.search(r"main\.cpp:3:\d+: error: .forgotten_kernel. was not declared", build.log), build.log
    assert build.library is None


def test_a_library_of_operators_registers_them_with_torch(builder: Builder) -> None:
    source = """
#include <torch/library.h>
#include <ATen/core/Tensor.h>
at::Tensor same(const at::Tensor& x) { return x; }
TORCH_LIBRARY(kp_test_ops, m) { m.def("same", &same); }
"""
    request = BuildRequest(
        name="ops", cpp_sources=(source,), no_implicit_headers=True, is_python_module=False
    )
    build = builder.build(request)
    assert build.state is BuildState.OK, build.log
    code = "import sys, torch; torch.ops.load_library(sys.argv[1]); "
    code += "print(torch.ops.kp_test_ops.same(torch.ones(2)))"
    command = [sys.executable, "-c", code, str(build.library)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert finished.stdout.strip() == "tensor([1., 1.])", finished.stderr
