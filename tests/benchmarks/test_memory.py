"""What the memory benchmark sees of processes, and how it tells growth from a peak."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from subprocess import PIPE, Popen

from benchmarks.memory import (
    ORCHESTRATOR,
    WORKERS,
    Growth,
    Moment,
    Watch,
    growth,
    outside,
    outside_rows,
    shown,
)

CHILD = "import sys; kept = bytearray(b'x' * (200 << 20)); print('here', flush=True); sys.stdin.read()"


def moment(done: int, own: int) -> Moment:
    return Moment(at_s=float(done), done=done, own=own, shared=0, files=9, threads=1, processes=1)


def test_growth_is_between_lows_and_leaves_peaks_and_the_first_out() -> None:
    sawtooth = [moment(done, 100 + extra) for done in range(20) for extra in (900, 0, 300)]
    assert growth(sawtooth, "own", 20) == Growth(100, 100, 1000)
    leaking = [moment(done, 100 + 5 * done + extra) for done in range(20) for extra in (0, 300)]
    assert growth(leaking, "own", 20) == Growth(135, 170, 495)
    assert growth([moment(0, 1)], "own", 20) is None


def test_own_and_shared_memory_of_a_child_are_seen() -> None:
    """In a process without the children of other tests."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        process.submit(_watch_a_child).result()


def _watch_a_child() -> None:
    place = Path("/dev/shm", f"kernelproof-test-{os.getpid()}")
    before = outside()
    try:
        with Popen([sys.executable, "-c", CHILD], stdin=PIPE, stdout=PIPE, text=True) as child:
            assert child.stdout is not None and child.stdout.readline() == "here\n"
            with Watch(0.02) as watch:
                deadline = time.monotonic() + 20
                while not watch.moments[WORKERS] and time.monotonic() < deadline:
                    time.sleep(0.02)
            place.write_bytes(b"x" * (8 << 20))
            child.communicate("")
        seen = watch.moments[WORKERS][-1]
        assert 200 << 20 <= seen.own < 300 << 20 and seen.processes >= 1 and seen.files >= 3
        assert watch.moments[ORCHESTRATOR][-1].threads >= 2
        after = outside()
        assert after["/dev/shm"] >= 8 << 20 and before.keys() == after.keys()
        assert outside_rows(before, after)[0][0] == "/dev/shm"
        assert f"{WORKERS}: own MiB" in shown(watch, 10)
    finally:
        place.unlink(missing_ok=True)
