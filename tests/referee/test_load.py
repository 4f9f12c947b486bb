"""Sources and headers that a candidate writes to files: `load`, `load_inline` and setuptools build them."""

from __future__ import annotations

import shlex
import textwrap
from typing import Any

import pytest

from kernelproof.problems import open_suite
from kernelproof.types import Status, VerifySettings
from kernelproof.types.verification import VerifyRequest
from tests.referee.court import Court

pytestmark = pytest.mark.ci

CANDIDATE = '''
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load

HERE = Path(tempfile.mkdtemp())
(HERE / "relu.cpp").write_text(r"""
{relu}
""")
(HERE / "bindings.cpp").write_text(r"""
#include <pybind11/pybind11.h>

void relu(size_t from, size_t to, size_t count);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("relu", &relu); }}
""")
extension = load({arguments})


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        extension.relu(x.data_ptr(), y.data_ptr(), x.numel())
        return y
'''
RELU = """
#include <cstddef>

void relu(size_t from, size_t to, size_t count) {
    const float* x = reinterpret_cast<const float*>(from);
    float* y = reinterpret_cast<float*>(to);
    for (size_t i = 0; i < count; ++i) {
        y[i] = x[i] > LEAST ? x[i] : 0.0f;
    }
}
"""
BOTH = 'name="relu_from_files", sources=[str(HERE / "relu.cpp"), str(HERE / "bindings.cpp")]'
FLAGS = 'extra_cflags=["-O1", "-DLEAST=0.0f"]'


def request(arguments: str, relu: str = RELU, **changes: Any) -> VerifyRequest:
    settings = {"backend": "cpp", "size": "small", "trials": 1, "measure": False, "threads": 1, **changes}
    return VerifyRequest(
        problem=open_suite().find("level1/1"),
        source=textwrap.dedent(CANDIDATE).format(relu=relu, arguments=arguments),
        settings=VerifySettings.model_validate(settings),
        device="cpu",
    )


def test_sources_in_files_are_built_with_their_flags_and_run(court: Court) -> None:
    verdict = court.judge(request(f"{BOTH}, {FLAGS}"))
    assert verdict.status is Status.CORRECT, f"{verdict.reason}\n{verdict.details}"
    (build,) = verdict.builds
    assert build.name == "relu_from_files"
    assert any("-DLEAST=0.0f" in command for command in build.commands)
    assert not court.left_over()


def test_a_source_that_does_not_compile_is_a_build_error_with_its_message(court: Court) -> None:
    alone = 'name="relu_alone", sources=str(HERE / "relu.cpp")'
    verdict = court.judge(request(alone, relu="#error nothing here compiles"))
    assert verdict.status is Status.BUILD_ERROR, verdict.reason
    assert "nothing here compiles" in verdict.builds[0].log


def test_a_file_that_is_not_there_is_the_candidates_own_error(court: Court) -> None:
    verdict = court.judge(request('name="nothing", sources=str(HERE / "nothing.cpp")'))
    assert verdict.status is Status.LOAD_ERROR
    assert "FileNotFoundError" in verdict.reason
    assert not verdict.builds


def test_what_is_not_offered_says_so(court: Court) -> None:
    verdict = court.judge(request(f"{BOTH}, {FLAGS}, is_standalone=True"))
    assert verdict.status is Status.LOAD_ERROR
    assert "standalone" in verdict.reason


SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

with open("relu.cpp", "w") as file:
    file.write("#error nothing here compiles")
setup(
    name="relu",
    ext_modules=[CppExtension("folder.relu", ["relu.cpp"]{more})],
    cmdclass={{"build_ext": BuildExtension}},
    script_args=["build_ext", "--inplace"],
)


class ModelNew:
    def forward(self, x):
        return x
"""


def set_up(more: str = "") -> VerifyRequest:
    return request("").model_copy(update={"source": SETUP.format(more=more)})


def test_what_setuptools_cannot_compile_is_a_build_error_with_its_message(court: Court) -> None:
    verdict = court.judge(set_up(', extra_compile_args={"cxx": ["-DA=\'B C\'"]}'))
    assert verdict.status is Status.BUILD_ERROR, verdict.reason
    (build,) = verdict.builds
    assert build.name == "relu" and "nothing here compiles" in build.log
    assert "-DA='B C'" in shlex.split(build.commands[0])


def test_what_setuptools_is_not_offered_says_so(court: Court) -> None:
    verdict = court.judge(set_up(', extra_objects=["other.o"]'))
    assert verdict.status is Status.LOAD_ERROR
    assert "object files are not supported here" in verdict.reason
    assert not verdict.builds
