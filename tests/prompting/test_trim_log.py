"""Compiler logs are cut to their errors: real compilers where they are there, their words where not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.prompting import trim_log, trim_text

NVCC = """\
[1/2] /usr/local/cuda/bin/nvcc -DTORCH_EXTENSION_NAME=add -c /build/a1b2/cuda.cu -o cuda.cuda.o
FAILED: cuda.cuda.o
/usr/local/cuda/bin/nvcc -DTORCH_EXTENSION_NAME=add -c /build/a1b2/cuda.cu -o cuda.cuda.o
/build/a1b2/cuda.cu(2): warning #177-D: variable "y" was declared but never referenced
  int y;
      ^

/build/a1b2/cuda.cu(3): error: identifier "missing" is undefined
  __attribute__((global)) void z(float* a){ missing(a); }
                                            ^

/build/a1b2/t.h(1): error: expression must have class type but it has type "float"
  template<class T> __attribute__((device)) T inner(T a){ return a.foo(); }
                                                                 ^
          detected during:
            instantiation of "T inner(T) [with T=float]" at line 2
            instantiation of "T outer(T) [with T=float]" at line 9 of /build/a1b2/cuda.cu

2 errors detected in the compilation of "/build/a1b2/cuda.cu".
ptxas error   : Entry function '_Z1zPf' uses too much shared data (0x61a80 bytes, 0xc000 max)
ninja: build stopped: subcommand failed.
"""

NVCC_TRIMMED = """\
cuda.cu(3): error: identifier "missing" is undefined
  __attribute__((global)) void z(float* a){ missing(a); }
                                            ^
t.h(1): error: expression must have class type but it has type "float"
  template<class T> __attribute__((device)) T inner(T a){ return a.foo(); }
                                                                 ^
            instantiation of "T outer(T) [with T=float]" at line 9 of /build/a1b2/cuda.cu
ptxas error   : Entry function '_Z1zPf' uses too much shared data (0x61a80 bytes, 0xc000 max)"""


def test_nvcc_errors_stay_with_their_context_and_nothing_else() -> None:
    assert trim_log(NVCC, 6_000) == NVCC_TRIMMED


def compiled(folder: Path, source: str, *arguments: str) -> str:
    (folder / "main.cpp").write_text(source)
    command = ["c++", "-std=c++20", "-Wall", *arguments, str(folder / "main.cpp"), "-o", str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return done.stderr


def test_a_template_flood_becomes_one_error_and_the_line_that_caused_it(tmp_path: Path) -> None:
    function = "void f(std::list<int>& l) { std::sort(l.begin(), l.end()); }"
    log = compiled(tmp_path, f"#include <algorithm>\n#include <list>\n{function}\n", "-c")
    trimmed = trim_log(log, 6_000)
    assert "no match for" in trimmed
    assert any(line.startswith("main.cpp:3:") for line in trimmed.splitlines())
    assert "note:" not in trimmed
    assert str(tmp_path) not in trimmed
    assert len(trimmed) < len(log) / 3


def test_warnings_are_dropped_beside_an_error(tmp_path: Path) -> None:
    trimmed = trim_log(compiled(tmp_path, "int f() { int unused; return missing; }\n", "-c"), 6_000)
    assert "unused" not in trimmed.splitlines()[0]
    assert trimmed.count("error:") == 1
    assert "warning:" not in trimmed


def test_linker_errors_are_found(tmp_path: Path) -> None:
    log = compiled(tmp_path, "int missing(int);\nint main() { return missing(1); }\n")
    assert "undefined reference to `missing(int)'" in trim_log(log, 6_000)


def test_repeats_are_counted_and_not_shown() -> None:
    log = "".join(f"/b/x.cpp:{line}:1: error: no such name\n" for line in [1, 1, 2, 3, 4, 5])
    assert trim_log(log, 6_000).splitlines() == [
        "x.cpp:1:1: error: no such name",
        "x.cpp:2:1: error: no such name",
        "x.cpp:3:1: error: no such name",
        "[2 more places with the same errors]",
    ]


def test_what_does_not_fit_is_counted_and_the_first_errors_stay() -> None:
    log = "".join(f"x.cpp:{line}:1: error: problem number {line}\n" for line in range(1, 101))
    trimmed = trim_log(log, 400)
    assert len(trimmed) <= 400
    shown = trimmed.splitlines()
    assert shown[0] == "x.cpp:1:1: error: problem number 1"
    assert shown[-1] == f"[{100 - (len(shown) - 1)} more errors left out]"


def test_a_log_without_a_known_error_keeps_its_end() -> None:
    log = "[1/2] c++ -c a.cpp -o a.o\n" + "chatter\n" * 500 + "something else went wrong\n"
    trimmed = trim_log(log, 300)
    assert trimmed.endswith("something else went wrong")
    assert len(trimmed) <= 300
    long_command = "/usr/bin/c++ " + "-I/some/where " * 200 + "-c a.cpp -o a.o"
    assert trim_log(f"[1/2] c++ -c a.cpp -o a.o\n{long_command}\nodd\n", 300) == "odd"


def test_colours_are_removed() -> None:
    assert trim_log("\x1b[1mx.cpp:1:1: \x1b[31merror: \x1b[0mbad\n", 100) == "x.cpp:1:1: error: bad"


pieces = st.sampled_from(
    [
        *NVCC.splitlines(keepends=True),
        "a.cpp:1:2: error: x\n",
        "y" * 500 + "\n",
        "\n",
        "\x1b[",
        "In file included from",
    ]
)


@given(st.lists(pieces | st.text(max_size=30), max_size=40), st.integers(0, 700))
def test_the_limit_is_kept_whatever_the_log(log: list[str], limit: int) -> None:
    assert len(trim_log("".join(log), limit)) <= limit


@given(st.text(max_size=300), st.integers(0, 300), st.floats(0, 1))
def test_a_cut_text_keeps_the_limit_and_a_short_one_is_unchanged(text: str, limit: int, head: float) -> None:
    cut = trim_text(text, limit, head=head)
    assert len(cut) <= limit
    assert cut == text or len(text) > limit


@pytest.mark.parametrize("line", ["a" * 200_000, "(" * 200_000, "c++ " + "x " * 100_000, ": " * 100_000])
def test_a_hostile_line_takes_bounded_work(line: str) -> None:
    assert len(trim_log(line, 1_000)) <= 1_000
