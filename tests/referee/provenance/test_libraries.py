"""Kernels of libraries are told by the libraries' files: names taken apart, and looked up in a real one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelproof.verifier.contestant.profiling import MAX_NAME
from kernelproof.verifier.referee.environment import loaded_files
from kernelproof.verifier.referee.provenance.origins import holds_kernel, kernel_name

SOURCE = """
#include <type_traits>
template <typename... Each> struct A_name_of_so_many_letters_that_few_of_them_fill_what_is_kept_of_a_name {};
using Long = A_name_of_so_many_letters_that_few_of_them_fill_what_is_kept_of_a_name<int, float>;
namespace vendor::tiles {
template <typename T, bool wide> typename std::enable_if<!wide, void>::type kernel(T*) {}
template typename std::enable_if<!false, void>::type kernel<float, false>(float*);
template <typename... Each> void many(Each...) {}
template void many<Long, Long, Long>(Long, Long, Long);
template <typename T> struct Tile { static void started(T) {} };
template struct Tile<int>;
}
namespace { __attribute__((used)) void hidden(int*) {} }
void scale(float*, int) {}
extern "C" void plain() {}
"""
GEMV = (
    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, false, 9, "
    "cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float con"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    folder = tmp_path_factory.mktemp("library")
    source, built = folder / "vendor.cpp", folder / "libvendor.so"
    source.write_text(SOURCE)
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None
    subprocess.run([compiler, "-std=c++17", "-shared", "-fPIC", "-o", built, source], check=True)
    return (folder / "not_there.so", built)


def test_a_kernel_is_found_by_all_of_its_name(library: tuple[Path, ...]) -> None:
    tile = "A_name_of_so_many_letters_that_few_of_them_fill_what_is_kept_of_a_name<int, float>"
    many = f"void vendor::tiles::many<{tile}, {tile}, {tile}>({tile}, {tile}, {tile})"
    assert len(many) > MAX_NAME
    for name in (
        "std::enable_if<!(false), void>::type vendor::tiles::kernel<float, false>(float*)",
        "vendor::tiles::Tile<int>::started(int)",
        "(anonymous namespace)::hidden(int*)",
        "scale(float*, int)",
        many[:MAX_NAME],
    ):
        assert holds_kernel(name, library), name


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("void vendor::tiles::kernel<float, true>(float*)", id="other arguments"),
        pytest.param("scale(float*, long)", id="other parameters"),
        pytest.param("mine::scale(float*, int)", id="another namespace"),
        pytest.param("scale", id="a C name, which may be anybody's"),
        pytest.param("plain", id="a C name that it has"),
        pytest.param("(", id="no name"),
    ],
)
def test_a_kernel_of_another_name_is_not(name: str, library: tuple[Path, ...]) -> None:
    assert not holds_kernel(name, library)


def test_a_file_without_anything_in_it_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "libempty.so").touch()
    assert not holds_kernel("scale(float*, int)", (tmp_path / "libempty.so",))


def test_the_libraries_of_this_process_are_listed_once() -> None:
    found = [file.name for file in loaded_files()]
    assert sum(name.startswith("libtorch_cpu.so") for name in found) == 1


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (GEMV, ("internal", "gemvx", "kernel")),
        ("void a::scale<float>(float*)", ("a", "scale")),
        ("void a::Tile<(int)3>::run<(a::Kind)1>(float*)", ("run",)),
        ("void a::(anonymous namespace)::tile<(1 > 0)>(float*)", ("tile",)),
        ("plain", ("plain",)),
        ("", ()),
    ],
)
def test_the_path_of_a_name_is_what_its_mangled_form_has_in_one_piece(
    name: str, path: tuple[str, ...]
) -> None:
    assert kernel_name(name).path == path


def test_what_a_template_returns_is_no_part_of_its_name() -> None:
    assert kernel_name(GEMV).plain.startswith("internal::gemvx::kernel<int, ")
    assert kernel_name("void a::scale<float>(float*)").plain == "a::scale<float>(float*)"
    assert kernel_name("(anonymous namespace)::tile(float*)").plain == "tile(float*)"


@example("1>1")
@example("a<)b")
@given(st.text(alphabet="ab:<>() \0,&*1", max_size=40) | st.text(max_size=20))
def test_any_text_has_a_name(text: str) -> None:
    found = kernel_name(text)
    assert found.base in text
    assert len(found.plain) <= len(text.replace("\0", "(anonymous namespace)"))
