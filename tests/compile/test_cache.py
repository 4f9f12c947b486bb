"""The cache: one compilation for all who ask at once, whole entries or none, damage noticed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.types import BuildRequest, BuildState
from kernelproof.verifier.build import Builder, Toolchain, prune

CHILD = """
import sys
from pathlib import Path
from kernelproof.verifier.build import Builder
from kernelproof.types import BuildRequest
build = Builder(Path(sys.argv[1])).build(BuildRequest.model_validate_json(sys.argv[2]))
print(build.state.value, build.cached)
"""

SLOW_SOURCE = """
template <int depth, long path> struct Tree {
  Tree<depth - 1, 2 * path> left;
  Tree<depth - 1, 2 * path + 1> right;
};
template <long path> struct Tree<0, path> {};
extern "C" int size() { return sizeof(Tree<14, 1>); }
"""
"""Seconds of compilation without a single header."""


def start_child(cache: Path, request: BuildRequest) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(cache), request.model_dump_json()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_threads_that_ask_at_once_compile_once(fresh: Builder, plain) -> None:
    with ThreadPoolExecutor(4) as pool:
        builds = list(pool.map(fresh.build, [plain()] * 4))
    assert [build.state for build in builds] == [BuildState.OK] * 4
    assert sorted(build.cached for build in builds) == [False, True, True, True]
    assert len({build.library_sha256 for build in builds}) == 1


@pytest.mark.ci
def test_processes_that_ask_at_once_compile_once(fresh_cache: Path, plain) -> None:
    children = [start_child(fresh_cache, plain(SLOW_SOURCE)) for _ in range(3)]
    printed = sorted(child.communicate(timeout=120)[0].strip() for child in children)
    assert printed == ["ok False", "ok True", "ok True"]


@pytest.mark.ci
def test_a_builder_killed_mid_compile_leaves_nothing_in_the_way(
    fresh_cache: Path, toolchain: Toolchain, plain
) -> None:
    request = plain(SLOW_SOURCE.replace("Tree<14", "Tree<40"))
    child = start_child(fresh_cache, request)
    work = fresh_cache / "builds" / "partial"
    wait_until(lambda: any(work.glob("*/scratch/build.ninja")))
    child.send_signal(signal.SIGKILL)
    child.wait()
    scratch = next(iter(work.glob("*/scratch"))).readlink()
    wait_until(lambda: not processes_within(scratch))

    builder = Builder(fresh_cache, toolchain=toolchain)
    assert list(work.iterdir()) == [] and not scratch.exists()
    assert builder.kept(builder.key(request)) is None
    assert builder.build(request, seconds=1.0).state is BuildState.TIMEOUT
    assert builder.build(plain()).state is BuildState.OK


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def processes_within(folder: Path) -> list[str]:
    """Ids of the processes whose working directory is `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(process.name)
        except OSError:
            continue
    return found


def truncate_library(entry: Path) -> None:
    (entry / "lib.so").write_bytes((entry / "lib.so").read_bytes()[:-100])


def flip_a_bit(entry: Path) -> None:
    content = bytearray((entry / "lib.so").read_bytes())
    content[len(content) // 2] ^= 1
    (entry / "lib.so").write_bytes(content)


def empty_record(entry: Path) -> None:
    (entry / "build.json").write_text("")


def record_of_another_build(entry: Path) -> None:
    record = json.loads((entry / "build.json").read_text())
    (entry / "build.json").write_text(json.dumps({**record, "key": "0" * 64}))


def remove_log(entry: Path) -> None:
    (entry / "log.txt").unlink()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "damage", [truncate_library, flip_a_bit, empty_record, record_of_another_build, remove_log]
)
def test_a_damaged_entry_is_built_again(fresh: Builder, plain, damage: Callable[[Path], None]) -> None:
    first = fresh.build(plain())
    assert first.library is not None
    damage(Path(first.library).parent)
    assert fresh.kept(fresh.key(plain())) is None
    again = fresh.build(plain())
    assert not again.cached and again.library_sha256 == first.library_sha256
    assert fresh.build(plain()).cached


def test_what_was_pruned_is_compiled_again(fresh: Builder, fresh_cache: Path, plain) -> None:
    first = fresh.build(plain())
    assert fresh.holds([first.key])
    assert prune(fresh_cache, target=0).builds == 1
    assert not fresh.holds([first.key]) and fresh.kept(fresh.key(plain())) is None
    again = fresh.build(plain())
    assert not again.cached and again.library is not None and Path(again.library).is_file()


def test_a_cache_may_be_moved(fresh: Builder, fresh_cache: Path, toolchain: Toolchain, plain) -> None:
    fresh.build(plain())
    moved = fresh_cache.rename(fresh_cache.with_name("moved"))
    build = Builder(moved, toolchain=toolchain).build(plain())
    assert build.cached and build.library is not None
    assert Path(build.library).is_relative_to(moved)


CHANGES: dict[str, object] = {
    "name": "other",
    "cpp_sources": ("int g();",),
    "cuda_sources": ("int g();",),
    "functions": {"f": "f"},
    "extra_cflags": ("-O3",),
    "extra_ldflags": ("-s",),
    "extra_include_paths": ("/opt/include",),
    "with_cuda": True,
}


@given(st.sets(st.sampled_from(sorted(CHANGES))), st.sets(st.sampled_from(sorted(CHANGES))))
def test_keys_are_equal_exactly_when_requests_ask_for_the_same(
    builder: Builder, plain, one: set[str], other: set[str]
) -> None:
    keys = [builder.key(plain(**{name: CHANGES[name] for name in names})) for names in (one, other)]
    # CUDA sources ask for CUDA by themselves.
    same = len(
        {frozenset(names - ({"with_cuda"} if "cuda_sources" in names else set())) for names in (one, other)}
    )
    assert (keys[0] == keys[1]) == (same == 1)


@pytest.mark.parametrize(
    "change",
    [
        {"torch": "2.99.0"},
        {"cxx_version": "c++ 99"},
        {"cxx_standard": "c++23"},
        {"extension_suffix": ".cpython-399.so"},
    ],
)
def test_another_torch_compiler_or_interpreter_is_another_key(
    builder: Builder, fresh_cache: Path, toolchain: Toolchain, plain, change: dict[str, str]
) -> None:
    other = Builder(fresh_cache, toolchain=toolchain.model_copy(update=change))
    assert other.key(plain()) != builder.key(plain())


def test_native_code_is_kept_apart_for_each_kind_of_cpu(
    builder: Builder, fresh_cache: Path, toolchain: Toolchain, plain
) -> None:
    other = Builder(fresh_cache, toolchain=toolchain.model_copy(update={"cpu": "another"}))
    assert other.key(plain()) == builder.key(plain())
    native = plain(extra_cflags=("-march=native",))
    assert other.key(native) != builder.key(native)
