"""What fails with the slim headers is compiled in full; what does not is left alone."""

from __future__ import annotations

import pytest

from kernelproof.types import BuildRequest, BuildState, Route
from kernelproof.verifier.build import Builder
from kernelproof.verifier.build.compiler_output import failures, first_error

SAID = """[1/3] compile main.o
FAILED: [code=1] main.o
/usr/bin/c++ -I/errors/include -c main.cpp -o main.o
main.cpp:2:3: error: 'nix' was not declared in this scope
[2/3] compile cuda.cuda.o
FAILED: cuda.cuda.o
ninja: build stopped: cannot make progress due to previous errors.
"""


def test_what_failed_is_what_ninja_names() -> None:
    assert failures(SAID) == {"main.o", "cuda.cuda.o"}
    assert failures("") == set()


def test_a_path_is_no_error() -> None:
    assert first_error(SAID) == "main.cpp:2:3: error: 'nix' was not declared in this scope"


KERNEL = """
__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor_of(2);
}
torch::Tensor doubled(torch::Tensor x) {
  auto y = torch::empty_like(x);
  scale<<<1, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("nvcc")
def test_what_no_header_mends_is_compiled_once(builder: Builder) -> None:
    build = builder.build(kernels(KERNEL))
    assert build.state is BuildState.ERROR, build.log
    assert 'identifier "factor_of" is undefined' in build.log
    assert build.route is Route.SLIM and build.fallback == ""


@pytest.mark.slow
@pytest.mark.usefixtures("nvcc")
def test_kernels_are_not_compiled_where_their_bindings_fail(builder: Builder) -> None:
    build = builder.build(kernels(KERNEL).model_copy(update={"cpp_sources": ("",)}))
    assert build.state is BuildState.ERROR
    assert "doubled" in build.log and "cuda.cu" not in build.log.replace("cuda.cuda.o", "")


@pytest.mark.slow
@pytest.mark.usefixtures("nvcc")
def test_only_the_source_that_failed_is_compiled_in_full(builder: Builder) -> None:
    build = builder.build(kernels(KERNEL.replace("factor_of(2)", "IntArrayRef()")))
    assert build.state is BuildState.ERROR, build.log
    assert "-Islim" in build.commands[0] and "-Islim" not in build.commands[1]
    assert build.route is Route.SLIM and "IntArrayRef" in build.fallback


def kernels(source: str) -> BuildRequest:
    return BuildRequest(
        name="own",
        cpp_sources=("torch::Tensor doubled(torch::Tensor x);",),
        cuda_sources=(source,),
        functions={"doubled": "doubled"},
        with_cuda=True,
    )
