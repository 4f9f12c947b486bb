"""Hostile sources: bombs are stopped at their limit, and nothing of the host can be read at compile time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelproof.types import BuildState
from kernelproof.verifier.build import Builder

TEMPLATE_BOMB = """
template <int depth, long path> struct Bomb {
  Bomb<depth - 1, 2 * path> left;
  Bomb<depth - 1, 2 * path + 1> right;
};
template <long path> struct Bomb<0, path> {};
Bomb<40, 1> bomb;
"""

SECRET = "the-database-password-is-swordfish"


def test_a_template_bomb_is_stopped_in_time_and_not_remembered(fresh: Builder, plain) -> None:
    build = fresh.build(plain(TEMPLATE_BOMB), seconds=2.0)
    assert build.state is BuildState.TIMEOUT
    assert "Stopped after" in build.log
    assert build.duration_s < 10
    assert fresh.kept(fresh.key(plain(TEMPLATE_BOMB))) is None


@pytest.mark.ci
def test_a_memory_bomb_is_stopped_at_its_limit(fresh: Builder, plain) -> None:
    build = fresh.build(plain(TEMPLATE_BOMB), seconds=60.0, memory_bytes=200 << 20)
    assert build.state is BuildState.TIMEOUT, build.log
    assert "memory" in build.log
    assert build.duration_s < 55


def hostile_sources(secret: Path) -> list[str]:
    return [
        f'#include "{secret}"\n',
        f'asm(".section .rodata\\n.incbin \\"{secret}\\"\\n");\nextern "C" int f() {{ return 0; }}',
        f'#if __has_include("{secret}")\n#error SEEN\n#endif\nextern "C" int f() {{ return 0; }}',
    ]


@pytest.mark.parametrize("number", range(3))
def test_a_file_of_the_host_reaches_neither_log_nor_library(
    fresh: Builder, plain, tmp_path: Path, number: int
) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text(f"{SECRET} x;\n")
    secret.chmod(0o644)
    build = fresh.build(plain(hostile_sources(secret)[number]))
    assert SECRET not in build.log and "SEEN" not in build.log
    if build.library is not None:
        assert SECRET.encode() not in Path(build.library).read_bytes()


@pytest.mark.parametrize("path", ["/etc/shadow", "/proc/1/environ", "/proc/self/environ"])
def test_system_files_and_the_environment_hold_nothing_of_ours(
    fresh: Builder, plain, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELPROOF_TEST_SECRET", SECRET)
    source = f'asm(".section .rodata\\n.incbin \\"{path}\\"\\n");\nextern "C" int f() {{ return 0; }}'
    build = fresh.build(plain(source))
    assert SECRET not in build.log
    if build.library is not None:
        content = Path(build.library).read_bytes()
        assert SECRET.encode() not in content
        if path == "/etc/shadow" and os.access(path, os.R_OK):
            assert b"root:" not in content


def test_a_library_that_is_a_link_to_another_file_is_not_taken(fresh: Builder, plain, tmp_path: Path) -> None:
    """`-wrapper` makes gcc run a program of the candidate's choice: here it replaces what the link leaves."""
    script = "ln -sf /etc/passwd lib.so"
    build = fresh.build(plain(extra_ldflags=(f"-wrapper sh,-c,'{script}'",)))
    assert build.state is BuildState.ERROR
    assert "no usable library" in build.log
    assert build.library is None
