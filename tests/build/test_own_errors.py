"""Errors with slim headers: final where they are surely the candidate's own, in doubt everywhere else."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.build import Builder, Toolchain
from pipeline.build.complaints import Complaint, complaints, failures
from pipeline.build.declarations import read_declarations
from pipeline.build.own_errors import all_own
from pipeline.build.preprocessed import Preprocessed, read_preprocessed
from pipeline.build.spelling import nearest
from pipeline.nouns import BuildRequest, BuildState, Route

GELU = """
#include <cmath>
static float gelu(float x) { return 0.5f * x * (1.0f + std::erf(x * 0.70710678f)); }
torch::Tensor activated(torch::Tensor x, int64_t rows) {
  auto input = x.contiguous();
  auto out = torch::empty_like(input);
  const float* in = input.data_ptr<float>();
  float* values = out.data_ptr<float>();
  for (int64_t i = 0; i < input.numel(); ++i) {
    values[i] = gelu(in[i]);
  }
  return out;
}
"""


def own(source: str, slim: str, full: str) -> tuple[Preprocessed, Preprocessed]:
    """What the preprocessor makes of `source` with either kind of headers."""

    def text(headers: str) -> Preprocessed:
        marked = f'# 1 "a.h" 1\n{headers}\n# 1 "main.cpp" 2\n{source}\n'
        found = read_preprocessed(marked, "main.cpp", source.count("\n") + 1)
        assert found is not None
        return found

    return text(slim), text(full)


def judged(messages: list[str], source: str, slim: str, full: str, line: int = 1) -> bool:
    found = [Complaint(line, message, message) for message in messages]
    return all_own(found, source.split("\n"), *own(source, slim, full))


SLIM = "int any; namespace at { struct Tensor { long numel(); }; } namespace torch { using at::Tensor; }"
FULL = f"{SLIM} namespace at {{ void shiny(int amount); template <class T> T odd(T); }} int global;"


@pytest.mark.parametrize(
    ("messages", "source"),
    [
        (["'kernel' was not declared in this scope"], "void f() { kernel(); }"),
        (["'kernel' was not declared in this scope; did you mean 'kernels'?"], "int kernels = kernel;"),
        (["'amount' was not declared in this scope"], "int f() { return amount; }"),  # a parameter's name
        (["'nothing' is not a member of 'at'"], "void f() { at::nothing(); }"),
        (["'Odd' does not name a type"], "Odd f();"),
        (["'class at::Tensor' has no member named 'lenght'"], "void f(at::Tensor x) { x.lenght(); }"),
        (["expected ';' before '}' token"], "int f() { return 1 }"),
        (["stray '`' in program"], "```"),
        (["'T9' was not declared in this scope", "template argument 1 is invalid"], "std::vector<T9> f();"),
    ],
)
def test_final(messages: list[str], source: str) -> None:
    assert judged(messages, source, SLIM, FULL)


@pytest.mark.parametrize(
    ("messages", "source"),
    [
        ([], ""),
        (["'global' was not declared in this scope"], "int f() { return global; }"),
        (["'shiny' is not a member of 'at'"], "void f() { at::shiny(1); }"),
        (["'shiny' was not declared in this scope"], "void f(at::Tensor x) { shiny(x); }"),
        (["'amount' was not declared in this scope"], "struct A : B { int f() { return amount; } };"),
        (["'shinyy' is not a member of 'at'"], "void f() { at::shinyy(1); }"),  # "did you mean 'shiny'?"
        (["'class at::Tensor' has no member named 'size'"], "int f(at::Tensor size) { return size.size; }"),
        (["'struct A' has no member named 'amount'"], "struct A {}; int f(A a) { return a.amount; }"),
        (["no matching function for call to 'f(int)'"], "void f(); int x = f(1);"),
        (["cannot convert 'at::Tensor' to 'long int'"], "long f(at::Tensor x) { return x; }"),
        (["'nix' was not declared in this scope", "invalid use of incomplete type"], "nix x;"),
        (["template argument 1 is invalid"], "std::vector<int> f();"),
        (["expected primary-expression before 'int'"], "int f() { return at::odd<int>(1); }"),
        (["expected ';' before '}' token"], "int f() { return global }"),
        (["expected ';' before '}' token"], "namespace at { int f() { return 1 } }"),
        (["static assertion failed"], "static_assert(false);"),
    ],
)
def test_in_doubt(messages: list[str], source: str) -> None:
    assert not judged(messages, source, SLIM, FULL)


def test_a_source_that_means_something_else_with_all_headers_is_in_doubt() -> None:
    slim, _ = own("void f() { helper(); }", SLIM, FULL)
    _, full = own("void helper(); void f() { helper(); }", SLIM, FULL)
    message = "'helper' was not declared in this scope"
    assert not all_own([Complaint(1, message, message)], ["void f() { helper(); }"], slim, full)


WORD = st.from_regex(r"[a-z][a-z0-9]{2,9}", fullmatch=True)
DECLARED = st.sampled_from(
    [
        *(
            "int {0};",
            "void {0}(int a);",
            "struct {0};",
            "enum class {0} {{ other }};",
            "enum E {{ a, {0} = 2 }};",
        ),
        *(
            "template <class T> T {0}(T x = {{}}, int n = 1) {{ return x; }}",
            "using {0} = int;",
            "int (*{0})();",
        ),
        *(
            "struct A {{ friend void {0}(A); }};",
            "struct A {{ struct {0}* next; }};",
            'extern "C" {{ int {0}; }}',
        ),
        *("typedef struct {{ int a; }} {0};", "namespace {0} {{ int a; }}", "const char c = '{{'; int {0};"),
        *(
            'const char* s = "}}"; int {0};',
            "inline namespace v1 {{ int {0}; }}",
            "auto x = [] {{}}; int {0};",
        ),
    ]
)


@given(name=WORD, form=DECLARED, space=st.sampled_from(["", "at", "at::native", "c10"]), other=WORD)
def test_what_the_full_headers_declare_is_never_missed_for_good(
    name: str, form: str, space: str, other: str
) -> None:
    text = form.format(name)
    full = f"int {other}x;\n" + (f"namespace {space} {{ {text} }}" if space else text)
    assert name in read_declarations(full).everywhere
    source = f"int f() {{ return {name}; }}"
    message = f"'{name}' was not declared in this scope"
    assert not judged([message, "expected ';' before '}' token"], source, "", full)


SAID = """[1/2] compile main.o
FAILED: [code=1] main.o
/usr/bin/c++ -c main.cpp -o main.o
main.cpp: In function 'int f()':
main.cpp:2:3: error: 'nix' was not declared in this scope
    2 |   nix;
      |   ^~~
ninja: build stopped: cannot make progress due to previous errors.
"""


@pytest.mark.parametrize(
    "line",
    [
        "In file included from main.cpp:1:",
        "main.cpp: In instantiation of 'void g(T) [with T = int]':",
        "main.cpp:5:3:   required from here",
        "other.h:1:1: error: expected unqualified-id",
        "[... 5000 characters left out ...]",
        "c++: fatal error: Killed signal terminated program cc1plus",
    ],
)
def test_what_is_not_a_plain_error_in_the_source_is_not_understood(line: str) -> None:
    said = failures(SAID)["main.o"]
    found = complaints(said, "main.cpp")
    assert found is not None
    assert [(each.line, each.message) for each in found] == [(2, "'nix' was not declared in this scope")]
    assert complaints([*said, line], "main.cpp") is None


@pytest.mark.parametrize(
    "name", ["colour", "Counter", "cuont", "size", "number", "xy", "block_sise", "kernal"]
)
def test_hints_are_those_of_the_compiler(name: str, tmp_path: Path, toolchain: Toolchain) -> None:
    known = ("color_", "counter", "count", "sizes", "num", "xyz", "block_size", "kernel_of")
    source = tmp_path / "a.cpp"
    source.write_text("".join(f"int {each};\n" for each in known) + f"int f() {{ return {name}; }}\n")
    command = [str(toolchain.cxx), "-fsyntax-only", str(source)]
    said = subprocess.run(
        command, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    )
    hint = re.search(r"did you mean '(\w+)'", said.stderr)
    assert f"'{name}' was not declared" in said.stderr
    if hint is not None:
        assert nearest(name, [hint[1]]) == hint[1]
    assert (hint is None) == (nearest(name, known) is None)


OWN = GELU.replace("gelu(in[i])", "gelu_fast(in[i])").replace("input.numel()", "input.element_total()")
REQUEST = BuildRequest(
    name="own",
    cpp_sources=(OWN.replace("return out;", "out = torch::allocate_quickly(rows);\n  return out"),),
    functions={"activated": "activated", "forgotten_one": "forgotten_one"},
)


def test_own_errors_end_the_build_on_the_slim_route(builder: Builder) -> None:
    build = builder.build(REQUEST)
    assert build.state is BuildState.ERROR and build.library is None
    assert build.route is Route.SLIM and build.fallback == ""
    for word in ("gelu_fast", "element_total", "allocate_quickly", "expected", "forgotten_one"):
        assert re.search(rf"^main\.cpp:\d+:\d+: error: .*{word}", build.log, re.MULTILINE), build.log
    assert "slim/" not in build.log.replace(str(builder.toolchain.torch_root), "")
    assert "KERNELPROOF" not in build.log and "-Islim" not in build.log


def test_a_header_that_is_nowhere_ends_it_too(builder: Builder) -> None:
    request = BuildRequest(
        name="own", cpp_sources=('#include "mine.hpp"\n' + GELU,), functions={"activated": ""}
    )
    build = builder.build(request)
    assert build.state is BuildState.ERROR and build.route is Route.SLIM and build.fallback == ""
    assert "main.cpp:2:10: fatal error: mine.hpp: No such file or directory" in build.log


@pytest.mark.slow
def test_the_log_is_the_one_of_the_full_route(
    builder: Builder, fresh_cache: Path, toolchain: Toolchain
) -> None:
    full = Builder(fresh_cache, toolchain=toolchain, slim=False).build(REQUEST)
    assert full.state is BuildState.ERROR and full.route is Route.FULL
    assert builder.build(REQUEST).log == full.log


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


@pytest.mark.usefixtures("nvcc")
def test_only_the_source_that_failed_is_compiled_in_full(builder: Builder) -> None:
    request = BuildRequest(
        name="own",
        cpp_sources=("torch::Tensor doubled(torch::Tensor x);",),
        cuda_sources=(KERNEL,),
        functions={"doubled": "doubled"},
        with_cuda=True,
    )
    build = builder.build(request)
    assert build.state is BuildState.ERROR, build.log
    assert 'identifier "factor_of" is undefined' in build.log
    assert "-Islim" in build.commands[0] and "-Islim" not in build.commands[1]
    assert build.route is Route.SLIM and "factor_of" in build.fallback
