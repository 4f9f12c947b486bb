"""The cache's bound: the least recently used go first, whole, whoever reads, writes or dies meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.types import BuildState
from kernelproof.verifier.build.build_cache import BuildCache
from tests.compile.shelves import BLOCK, age, folders, is_half, key_of, room, store

BOUND = 20 * BLOCK

WORKER = """
import random, sys
from pathlib import Path
from kernelproof.verifier.build.build_cache import BuildCache
from tests.compile.shelves import folders, is_half, key_of, store
root, seed, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
cache = BuildCache(root, bound=int(sys.argv[4]), grace_s=0.0)
draw = random.Random(seed)
print("ready", flush=True)
served = half = wrong = 0
for _ in range(rounds):
    number = draw.randrange(12)
    half += any(is_half(folder) for folder in folders(root).values())
    build = cache.load(key_of(number))
    if build is None:
        store(cache, number, 1 + number % 3)
        continue
    served += 1
    try:
        content = Path(build.library).read_bytes()
    except FileNotFoundError:
        continue
    wrong += content != bytes([number]) * ((1 + number % 3) * 4096)
print(served, half, wrong)
"""


def start_worker(root: Path, seed: int, rounds: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(root), str(seed), str(rounds), str(BOUND)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=10, max_size=30))
def test_the_least_recently_used_go_first(asked: list[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "builds")
        cache = BuildCache(root, bound=BOUND, grace_s=0.0)
        kept: dict[int, int] = {}  # number to bytes, least recently used first
        for number, blocks in asked:
            build = cache.load(key_of(number))
            assert (build is not None) == (number in kept)
            if build is not None:
                kept[number] = kept.pop(number)
                continue
            store(cache, number, blocks)
            kept[number] = room(blocks)
            if sum(kept.values()) > BOUND:
                while sum(kept.values()) > 0.9 * BOUND and len(kept) > 1:
                    del kept[next(iter(kept))]
            assert set(folders(root)) == set(map(key_of, kept))
        assert list((root / "partial").iterdir()) == []


def test_what_was_used_within_the_hour_stays(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path, bound=BOUND)
    for number in range(8):
        store(cache, number)
    assert len(folders(tmp_path)) == 8, "beyond the bound, but all of them new"
    for number in range(8):
        age(tmp_path, number, 4000.0)
    assert cache.load(key_of(3)) is not None
    for number in (8, 9):
        store(cache, number)
    assert set(folders(tmp_path)) == {key_of(number) for number in (3, 6, 7, 8, 9)}


def test_a_cache_that_cannot_shrink_is_not_walked_for_every_store(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path, bound=200 * BLOCK)

    def walked() -> int:
        return json.loads((tmp_path / "size.json").read_text())["walked_bytes"]

    store(cache, 0, 250)
    assert walked() == room(250)
    store(cache, 1)
    assert walked() == room(250), "less than a twentieth of the bound came since"
    store(cache, 2, 20)
    assert walked() == room(250) + room() + room(20)


def test_beyond_twice_the_bound_new_ones_go_too(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path, bound=BOUND)
    for number in range(10):
        store(cache, number)
    assert len(folders(tmp_path)) == 10
    store(cache, 10)
    assert set(folders(tmp_path)) == {key_of(number) for number in range(7, 11)}


def test_a_clock_that_was_set_back_keeps_nothing_for_ever(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path, bound=BOUND)
    for number in range(5):
        store(cache, number)
        age(tmp_path, number, -1e6)
    store(cache, 5)
    assert len(folders(tmp_path)) == 4 and cache.load(key_of(5)) is not None


@pytest.mark.parametrize("damage", [lambda f: f.unlink(), lambda f: f.write_text('{"bytes": 1'), None])
def test_a_lost_count_is_made_anew(tmp_path: Path, damage: Callable[[Path], object] | None) -> None:
    cache = BuildCache(tmp_path, bound=BOUND, grace_s=0.0)
    for number in range(5):
        store(cache, number)
    count = tmp_path / "size.json"
    assert json.loads(count.read_text())["bytes"] == 5 * room()
    if damage is not None:
        damage(count)
    store(cache, 5)
    assert len(folders(tmp_path)) == 4
    assert json.loads(count.read_text())["bytes"] == 4 * room()


@pytest.mark.ci
def test_processes_that_share_a_tiny_cache_see_whole_entries(tmp_path: Path) -> None:
    workers = [start_worker(tmp_path, seed, 120) for seed in range(3)]
    printed = [worker.communicate(timeout=120)[0].split() for worker in workers]
    assert all(len(words) == 4 for words in printed), printed
    assert sum(int(served) for _, served, _, _ in printed) > 0
    assert [(half, wrong) for _, _, half, wrong in printed] == [("0", "0")] * 3
    cache = BuildCache(tmp_path, bound=BOUND, grace_s=0.0)
    store(cache, 100)
    assert cache.prune().left_bytes <= BOUND
    assert list((tmp_path / "partial").iterdir()) == []


@pytest.mark.ci
def test_killed_while_it_evicts_leaves_nothing_half(tmp_path: Path) -> None:
    for seed in range(4):
        worker = start_worker(tmp_path, seed, 1_000_000)
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        time.sleep(0.1 + 0.037 * seed)
        worker.kill()
        worker.communicate()
        assert not any(is_half(folder) for folder in folders(tmp_path).values())
        cache = BuildCache(tmp_path, bound=BOUND, grace_s=0.0)
        assert list((tmp_path / "partial").iterdir()) == []
        found = folders(tmp_path)
        assert found and all(cache.load(key) is not None for key in found)
    store(cache, 100)
    assert cache.prune().left_bytes <= BOUND


def test_what_an_evictor_had_moved_when_it_was_killed_is_deleted_by_the_next(tmp_path: Path) -> None:
    code = """
import os, shutil, signal, sys
from pathlib import Path
from kernelproof.verifier.build.build_cache import BuildCache
from tests.compile.shelves import store
cache = BuildCache(Path(sys.argv[1]))
for number in range(3):
    store(cache, number)
shutil.rmtree = lambda path, **words: os.kill(os.getpid(), signal.SIGKILL)  # the first deletion is its last
cache.prune(0)
"""
    child = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert child.returncode == -9
    assert len(list((tmp_path / "partial").glob("*/*/build.json"))) == 3 and folders(tmp_path) == {}
    cache = BuildCache(tmp_path)
    assert list((tmp_path / "partial").iterdir()) == []
    store(cache, 0)
    assert cache.load(key_of(0)) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_loading_from_a_cache_that_cannot_be_written_is_no_error() -> None:
    code = """
import os, sys
from pathlib import Path
from kernelproof.verifier.build.build_cache import BuildCache
from tests.compile.shelves import key_of
cache = BuildCache(Path(sys.argv[1]))
os.setuid(65534)
print(cache.load(key_of(0)).state)
"""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        root = Path(folder, "builds")
        store(BuildCache(root), 0)
        age(root, 0, 5000.0)
        done = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, text=True)
        assert done.stdout.strip() == BuildState.OK, done.stderr
        record = folders(root)[key_of(0)] / "build.json"
        assert time.time() - record.stat().st_mtime > 4000.0
