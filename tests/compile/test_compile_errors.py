"""A candidate's faults: each is a `Build` with a state and a log that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from kernelproof.types import BuildRequest, BuildState
from kernelproof.verifier.build import Builder, Toolchain
from kernelproof.verifier.build.compiler_output import MAX_LOG_CHARS, shorten


def test_the_log_names_file_line_and_error(fresh: Builder, plain) -> None:
    build = fresh.build(plain("int f() {\n  return missing_name;\n}"))
    assert build.state is BuildState.ERROR
    assert "main.cpp:2:10: error:" in build.log and "missing_name" in build.log
    assert build.library is None and build.library_sha256 is None


def test_errors_are_remembered_and_read_the_same_everywhere(
    fresh: Builder, toolchain: Toolchain, tmp_path: Path, plain
) -> None:
    request = plain("int f() { return missing_name; }\n#error stop here")
    first = fresh.build(request)
    assert fresh.build(request) == first.model_copy(update={"cached": True})
    elsewhere = Builder(tmp_path / "another cache", toolchain=toolchain).build(request)
    assert elsewhere.log == first.log
    assert "kernelproof-build-" not in first.log


def test_undefined_symbols_are_left_to_the_loader_as_torch_leaves_them(fresh: Builder, plain) -> None:
    build = fresh.build(plain('int elsewhere(); extern "C" int f() { return elsewhere(); }'))
    assert build.state is BuildState.OK, build.log


def test_a_linker_error_shows_no_path_of_the_scratch_directory(fresh: Builder, plain) -> None:
    build = fresh.build(plain(extra_ldflags=("-lno_such_library_anywhere",)))
    assert build.state is BuildState.ERROR
    assert "no_such_library_anywhere" in build.log
    assert "kernelproof-build-" not in build.log


@pytest.mark.parametrize("name", ["../evil", "a b", "", "x;y", "é", "a" * 201, "a/b", "a\nb", "-o"])
def test_names_that_could_leave_the_directory_or_the_command_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        BuildRequest(name=name)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ValidationError):
        BuildRequest.model_validate({"name": "x", "build_directory": "/etc"})


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("-O1\n-O2'\n'", "line break"),
        ("'unbalanced", "No closing quotation"),
        ("-D" + "x" * 70_000, "more than"),
    ],
)
def test_flags_that_no_command_line_can_hold_are_build_errors(
    fresh: Builder, plain, flag: str, said: str
) -> None:
    build = fresh.build(plain(extra_cflags=(flag,)))
    assert build.state is BuildState.ERROR
    assert said in build.log and "extra_cflags" in build.log


@pytest.mark.parametrize(
    "injection", ["; touch ran", "$(touch ran)", "`touch ran`", "&& touch ran #", "| tee ran"]
)
def test_a_shell_never_interprets_a_flag(fresh: Builder, plain, injection: str) -> None:
    # The library would hold the word if the shell had made the file that __has_include looks for.
    source = '#if __has_include("ran")\nextern "C" const char* f() { return "SHELL-RAN"; }\n#endif\n'
    build = fresh.build(plain(source, extra_cflags=(f"-O0 {injection}",)))
    assert "SHELL-RAN" not in build.log
    assert build.state is BuildState.ERROR
    assert any(word in build.log for word in ("touch", "tee")), build.log


def test_the_output_of_a_flood_of_errors_is_bounded_and_keeps_the_first(fresh: Builder, plain) -> None:
    lines = "\n".join(f"{'x' * 150} undeclared_{n};" for n in range(4000))
    build = fresh.build(plain(lines))
    assert build.state is BuildState.ERROR
    assert "main.cpp:1:1: error" in build.log
    assert "characters left out" in build.log
    assert len(build.log) <= MAX_LOG_CHARS


def test_shortened_text_keeps_its_ends_and_says_how_much_is_gone() -> None:
    text = "".join(chr(ord("a") + n % 26) for n in range(100_000))
    short = shorten(text, 1000)
    assert len(short) <= 1000
    head, marker, tail = short.split("\n")
    assert text.startswith(head) and text.endswith(tail)
    assert f"{len(text) - len(head) - len(tail)} characters left out" in marker
