"""Compilers that somebody outside kills, sources that pretend it, and processes that a build leaves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from kernelproof.types import BuildState
from kernelproof.verifier.build import Builder
from kernelproof.verifier.build.compiler_output import killed
from tests.compile.conftest import RequestMaker

SLOW = """
constexpr unsigned long spin(unsigned long steps) {
    unsigned long state = 1;
    for (unsigned long i = 0; i < steps; ++i) state = state * 6364136223846793005u + 1;
    return state;
}
constexpr unsigned long spun = spin(1000000);
extern "C" unsigned long answer() { return spun; }
"""
LONG = {"extra_cflags": ("-fconstexpr-ops-limit=9000000000000", "-fconstexpr-loop-limit=2000000000")}
SAID = "c++: fatal error: Killed signal terminated program cc1plus"


@contextmanager
def killer(name: str, most: int) -> Iterator[Callable[[], int]]:
    """Kills the first so many compilers of this name that this process's builds start."""
    over, dead = threading.Event(), set[int]()

    def work() -> None:
        while not over.wait(0.02) and len(dead) < most:
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    if process.name() == name and process.pid not in dead and len(dead) < most:
                        process.kill()
                        dead.add(process.pid)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield lambda: len(dead)
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("name", ["cc1plus", "c++", "ninja"])
def test_a_compiler_that_is_killed_starts_again(fresh: Builder, plain: RequestMaker, name: str) -> None:
    with killer(name, 1) as count:
        build = fresh.build(plain(SLOW, **LONG))
    assert count() == 1
    assert build.state is BuildState.OK, build.log


def test_a_linker_that_is_killed_starts_again(fresh: Builder, plain: RequestMaker) -> None:
    """What the slow step of the link is: an assembler's file of some 100 MB."""
    big = 'asm(".section .rodata\\n.rept 2000000\\n.quad 1\\n.endr\\n");extern "C" int f() { return 0; }'
    with killer("as", 1) as count:
        build = fresh.build(plain(big))
    assert count() == 1 and build.state is BuildState.OK, build.log


@pytest.mark.ci
def test_compilers_that_are_killed_each_time_on_purpose_are_no_machine_fault_for_ever(
    fresh: Builder, plain: RequestMaker
) -> None:
    """Whoever always does that is the source, as far as anybody can know: final, and never cached."""
    for source in (f'#pragma GCC error "x\\n{SAID}"', f'asm(".print \\"{SAID}\\"\\n.error \\"x\\"");'):
        build = fresh.build(plain(source))
        assert build.state in (BuildState.ERROR, BuildState.TIMEOUT), build.log
        if build.state is BuildState.TIMEOUT:
            assert build.log.startswith("The compilers were killed 3 times of 3")
            assert fresh.kept(fresh.key(plain(source))) is None


def test_what_a_build_leaves_behind_does_not_hold_it_up(fresh: Builder, plain: RequestMaker) -> None:
    """gcc has `-wrapper`, by which a candidate runs a program of its own; it leaves another that holds every
    descriptor it has."""
    script = 'sleep 300 & exec "$0" "$@"'
    began = time.monotonic()
    build = fresh.build(plain(extra_cflags=(f"-wrapper sh,-c,'{script}'",)))
    assert build.state is BuildState.OK, build.log
    assert time.monotonic() - began < 120
    left = [each for each in psutil.Process().children(recursive=True) if each.name() == "sleep"]
    assert left == []


@pytest.mark.parametrize(
    "line",
    [
        SAID,
        "g++-13: fatal error: Terminated signal terminated program cc1plus",
        "collect2: fatal error: ld terminated with signal 9 [Killed]",
        "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        "nvcc error   : 'cudafe++' died due to signal 9 (Kill signal)",
        "nvcc error   : 'ptxas' died due to signal 15 (Terminated)",
        "clang: error: unable to execute command: Killed",
        "step 0: ended by signal 9",
        "FAILED: [code=137] main.o ",
    ],
)
def test_what_tools_say_of_a_killed_one(line: str) -> None:
    assert killed(f"[1/2] compile main.o\n{line}\ncompilation terminated.\n") == line
    assert killed(f"main.cpp:3:2: error: #error {line}") == ""
