"""What no header can mend is told from what one might; the first error that matters is what is said of it."""

from __future__ import annotations

import pytest

from kernelproof.types import Build, BuildRequest, BuildState, Status
from kernelproof.verifier.build import Toolchain, compiler_output
from kernelproof.verifier.build.slim_headers import has_unfixable_errors

HEAD = "[1/2] compile it\nFAILED: [code=1] it\n/usr/bin/c++ -c main.cpp -o main.o\n"
BOUND = HEAD + (
    "main.cpp:4:43: error: \u2018own\u2019 was not declared in this scope\n"
    '    4 | m.def("own", torch::wrap_pybind_function(own), "own");\n'
)
SCALAR = (
    'cuda.cu(13): error: no suitable conversion function from "const at::DeprecatedTypeProperties" to '
    '"c10::ScalarType" exists\n      AT_DISPATCH(x.type())\n'
)
FINAL = {
    "no file": "main.cpp:1:10: fatal error: THC/THC.h: No such file or directory\n 1 | #include\n",
    "no such name anywhere": 'cuda.cu(9): error: identifier "of_nobody_kp" is undefined\n  f(1);\n',
    "semicolon": 'cuda.cu(13): error: expected a ";"\n    return y\n',
    "semicolon for g++": "main.cpp:2:3: error: expected \u2018;\u2019 before \u2018return\u2019\n 2 | y;\n",
    "type": SCALAR,
}
OPEN = {
    "a name of torch": 'cuda.cu(9): error: identifier "IntArrayRef" is undefined\n  IntArrayRef a;\n',
    "a member": "main.cpp:2:3: error: \u2018nn\u2019 is not a member of \u2018torch\u2019\n 2 | nn\n",
    "a macro may be missing": 'cuda.cu(13): error: expected a ";"\n    C10_HOST_DEVICE float f()\n',
    "in a header": "slim/ATen/x.h:2:3: error: expected \u2018;\u2019 before \u2018x\u2019\n    2 | a x\n"
    + FINAL["semicolon"],
    "later only": "main.cpp:2:3: error: nothing known\n    2 | a x\n" + SCALAR,
}


def request(cpp: str = "") -> BuildRequest:
    return BuildRequest(name="e", cpp_sources=(cpp,), functions={"own": "own"})


@pytest.mark.few(1)
@pytest.mark.parametrize("said", FINAL.values(), ids=FINAL)
def test_what_no_header_mends_is_final(said: str, toolchain: Toolchain) -> None:
    assert has_unfixable_errors(HEAD + said, request(), toolchain)


@pytest.mark.parametrize("said", OPEN.values(), ids=OPEN)
def test_what_a_header_may_mend_is_not(said: str, toolchain: Toolchain) -> None:
    assert not has_unfixable_errors(HEAD + said, request(), toolchain)


def test_a_function_that_is_bound_and_not_declared_is_final(toolchain: Toolchain) -> None:
    called_as_torch_does = BOUND.replace("own", "relu")
    wanted = BuildRequest(name="e", cpp_sources=("",), functions={"relu": "relu"})
    assert has_unfixable_errors(called_as_torch_does, wanted, toolchain)
    using = wanted.model_copy(update={"cpp_sources": ("using namespace torch;",)})
    assert not has_unfixable_errors(called_as_torch_does, using, toolchain)


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (BOUND, "`functions` names 'own', which `cpp_sources` does not declare"),
        (HEAD + SCALAR, "x.scalar_type()"),
        (HEAD + 'cuda.cu(12): error: identifier "AT_CHECK" is undefined\n', "TORCH_CHECK"),
        (HEAD + FINAL["no file"], "no THC"),
    ],
)
def test_what_torch_dropped_is_named_with_what_to_write(log: str, said: str) -> None:
    assert said in compiler_output.hint(log)


def test_the_first_error_of_ones_own_is_told_without_commands() -> None:
    log = HEAD + "/usr/include/torch/a.h:1:1: error: in a header\n" + FINAL["semicolon"]
    assert compiler_output.complaint(log) == 'cuda.cu(13): error: expected a ";"'
    assert compiler_output.hint(log) == ""


def test_equal_failures_are_told_once_with_their_number() -> None:
    one = Build(key="0", state=BuildState.ERROR, name="e", log=BOUND)
    ended = compiler_output.ended_by_builds([one] * 64)
    assert ended is not None
    assert ended.status is Status.BUILD_ERROR and ended.details == BOUND
    assert ended.reason.startswith(
        "your extension did not compile (asked for 64 times): main.cpp:4:43: error: 'own'"
    )
    assert compiler_output.ended_by_builds([]) is None
