"""The slim route: the same behaviour as with all of torch's headers, and all of them where it does not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.types import Build, BuildRequest, BuildState, Route
from kernelproof.verifier.build import Builder, Toolchain
from kernelproof.verifier.build.build_cache import BuildCache
from kernelproof.verifier.build.builder import Glue
from kernelproof.verifier.build.slim_headers import Slim, slim_route
from kernelproof.verifier.sandbox import Group, Limits
from tests.compile.calling import call

TYPES = """
#include <cmath>
std::vector<torch::Tensor> pair(const torch::Tensor& x, int64_t n, std::optional<torch::Tensor> other,
                                std::vector<int64_t> sizes, bool flag, float factor) {
  TORCH_CHECK(n > 0, "n must be positive");
  return {x + factor, other.has_value() ? *other : x * static_cast<double>(sizes.size() + flag)};
}
std::tuple<torch::Tensor, int64_t, double, bool, std::string> many(torch::Tensor x) {
  return {torch::exp(x).sum(), x.numel(), 2.5, true, std::string("word")};
}
void add_one(torch::Tensor x) { x.add_(1); }
int small(int value) { return value; }
uint8_t tiny(uint8_t value) { return value; }
std::string said(std::string words, std::vector<torch::Tensor> all) {
  return words + std::to_string(all.size());
}
torch::Tensor undefined() { return torch::Tensor(); }
void throws() { throw std::out_of_range("far"); }
void warns() { TORCH_WARN("beware"); }
torch::Tensor product(torch::Tensor a, torch::Tensor b) { return torch::mm(a, b.t()).clamp_min(0); }
"""
NAMES = ("pair", "many", "add_one", "small", "tiny", "said", "undefined", "throws", "warns", "product")
EXTENSION = BuildRequest(name="types", cpp_sources=(TYPES,), functions={name: name for name in NAMES})
CALLS = """
import warnings
x = torch.arange(6.).view(2, 3)
def ask(name, *arguments, **more):
    try:
        print(name, getattr(module, name)(*arguments, **more))
    except Exception as error:
        text = str(error).splitlines()[0] if not isinstance(error, TypeError) else ""
        print(name, type(error).__name__, text)
ask("pair", x, 3, None, [1, 2], True, 1.5)
ask("pair", x, 0, None, [], False, 1)
ask("pair", x, 3, x, (4,), 1, torch.tensor(2.))
ask("pair", x, torch.tensor(3), None, [torch.tensor(1)], None, 0.5)
for bad in ([x, 1.5, None, [], True, 1.], [x], [1, 1, None, [], True, 1.], [x, 1, 2, [], True, 1.],
            [x, 1, None, "ab", True, 1.], [x, 2**70, None, [], True, 1.], [x, 1, None, [0.5], True, 1.],
            [x, 1, None, [], True, "a"], [x, 1, None, None, True, 1.], [None, 1, None, [], True, 1.]):
    ask("pair", *bad)
ask("many", x)
ask("add_one", x)
ask("add_one", arg0=x)
print(x.tolist())
for value in (5, -5, 2**31, True, 1.0, "1", None):
    ask("small", value)
for value in (255, 256, -1):
    ask("tiny", value)
ask("said", "a", [x, x])
ask("said", b"b", ())
ask("said", "a", x)
ask("undefined")
ask("throws")
ask("product", x, x)
ask("product", x, x.t())
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    ask("warns")
    print([str(each.message)[:6] for each in seen])
print(module.__name__, sorted(name for name in dir(module) if not name.startswith("__")))
"""
EXPECTED_LINES = 36


@pytest.fixture(scope="module")
def slim(builder: Builder) -> Build:
    return builder.build(EXTENSION)


@pytest.mark.slow
def test_a_plain_extension_takes_the_slim_route(slim: Build) -> None:
    assert slim.state is BuildState.OK, slim.log
    assert slim.route is Route.SLIM and slim.fallback == ""
    assert "pybind11" not in slim.log
    assert "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]" not in call(slim, CALLS)  # add_one wrote to it
    assert "n must be positive" in call(slim, CALLS)


@pytest.mark.slow
def test_it_takes_gives_and_raises_what_the_full_one_does(
    slim: Build, fresh_cache: Path, toolchain: Toolchain
) -> None:
    full = Builder(fresh_cache, toolchain=toolchain, slim=False).build(EXTENSION)
    assert full.state is BuildState.OK and full.route is Route.FULL
    told = call(full, CALLS)
    assert call(slim, CALLS) == told
    assert len(told.splitlines()) > EXPECTED_LINES


@pytest.mark.slow
def test_what_the_slim_headers_lack_is_compiled_in_full(builder: Builder) -> None:
    source = "bool deterministic() { return at::globalContext().deterministicAlgorithms(); }"
    request = BuildRequest(
        name="context", cpp_sources=(source,), functions={"deterministic": "deterministic"}
    )
    build = builder.build(request)
    assert build.state is BuildState.OK, build.log
    assert build.route is Route.FULL and "globalContext" in build.fallback
    assert call(build, "print(module.deterministic())") == "False"


@pytest.mark.parametrize(
    "source",
    [
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}",
        "py::object f(py::object x) { return x; }",
        "torch::Tensor f(torch::Tensor x) { return torch::nn::functional::relu(x); }",
        "torch::Tensor f() { return torch::zeros({2}, torch::requires_grad()); }",
        "#include <torch/csrc/autograd/variable.h>",
    ],
)
def test_what_is_none_for_it_is_not_tried(source: str, toolchain: Toolchain) -> None:
    request = BuildRequest(name="full", cpp_sources=(source,), functions={"f": "f"})
    assert slim_route(request, toolchain) is None


def test_what_a_header_of_its_own_uses_counts_too(toolchain: Toolchain) -> None:
    def route(header: str) -> Slim | None:
        request = BuildRequest(
            name="own",
            cpp_sources=('#include "own.h"\ntorch::Tensor f() { return made(); }',),
            files={"own/own.h": f"inline torch::Tensor made() {{ return {header}; }}"},
            extra_include_paths=("own",),
            functions={"f": "f"},
        )
        return slim_route(request, toolchain)

    assert route("torch::zeros({2}, torch::requires_grad())") is None
    slim = route("at::linspace(0, 1, 2)")
    assert slim is not None and "slim/ATen/ops/linspace.h" in slim.files


def test_own_bindings_leave_the_slim_route_to_the_kernels(toolchain: Toolchain) -> None:
    bound = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}"
    kernel = "__global__ void k(float* x) { x[0] = 1; }"
    request = BuildRequest(name="own", cpp_sources=(bound,), cuda_sources=(kernel,), with_cuda=True)
    route = slim_route(request, toolchain)
    assert route is not None and route.cuda and not route.bindings


def test_a_torch_with_other_headers_is_compiled_against_in_full(toolchain: Toolchain, tmp_path: Path) -> None:
    strange = toolchain.model_copy(update={"torch_includes": (str(tmp_path),)})
    assert slim_route(EXTENSION, strange) is None


@pytest.mark.slow
def test_a_glue_that_does_not_compile_costs_only_time(
    fresh_cache: Path, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "glue.cpp").write_text("#error another torch")
    monkeypatch.setattr("kernelproof.verifier.build.builder.GLUE_FOLDER", tmp_path)
    builder = Builder(fresh_cache, toolchain=toolchain)
    for name in ("first", "second"):  # the first begins while the glue is compiled, the second knows better
        request = BuildRequest(name=name, cpp_sources=("#error this one, too",), functions={"f": "f"})
        build = builder.build(request)
        assert build.state is BuildState.ERROR and "this one, too" in build.log
    assert build.route is Route.FULL and build.fallback == ""


@pytest.mark.slow
def test_only_the_linker_waits_for_the_glue(fresh: Builder) -> None:
    """The first build of a cache is compiled beside the glue; the library is the one that others get."""
    first = fresh.build(EXTENSION)
    assert first.state is BuildState.OK and first.route is Route.SLIM, first.log
    assert "[1/1] compile main.o" in first.log and "[1/1] link lib.so" in first.log
    assert first.library is not None
    before = Path(first.library).read_bytes()
    Path(first.library).unlink()
    again = fresh.build(EXTENSION)
    assert again.state is BuildState.OK and again.commands == first.commands
    assert "[2/2] link lib.so" in again.log
    assert again.library is not None and Path(again.library).read_bytes() == before


def test_a_build_whose_lock_is_that_of_the_glues_key_can_have_it_made(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys share lock files, and the glue is made while a build's lock is held: no waiting for itself."""
    cache = BuildCache(tmp_path)
    glue = Glue(toolchain, cache, Group(), unsafe=False)
    made = Build(key="0" * 64, state=BuildState.ERROR, name="glue", duration_s=0.0)
    monkeypatch.setattr(glue, "_make", lambda: made)
    monkeypatch.setattr("kernelproof.verifier.build.builder._LIMITS", Limits(wall_s=1.0))
    with cache.lock(glue._key, 1.0):
        assert glue.object() is None
