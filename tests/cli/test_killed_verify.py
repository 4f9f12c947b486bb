"""SIGKILL to a whole `verify` of many candidates, its processes all at once, at any moment."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from kernelproof.types import Status
from kernelproof.verifier.build.build_cache import BuildCache, entries
from tests.cli import material
from tests.cli.program import Program

QUICK = ("--backend", "cpp", "--no-measure", "--trials", "1")
SHARED_MEMORY = Path("/dev/shm")
LONGEST_S = 1200.0
"""A run of many candidates is over by then, on a loaded machine too."""
PATIENCE_S = 10.0
"""So long may what was killed take to go."""


class Lines:
    """A file of candidates with every kind of end, each compiled from sources of its own."""

    def __init__(self, program: Program, suite: Path, folder: Path, *, count: int) -> None:
        kinds = (
            (material.right, Status.CORRECT),
            (material.wrong, Status.WRONG_OUTPUT),
            (material.uncompilable, Status.BUILD_ERROR),
        )
        self.program, self.expected = program, dict[str, Status]()
        self._shared = shared_memory()
        lines = [{"id": "prose", "problem": "level1/1", "response": "Kernels are nice."}]
        self.expected["prose"] = Status.NO_CODE
        for number in range(count - 1):
            make, status = kinds[number % len(kinds)]
            name = f"{status}_{number}"
            lines.append({"id": name, "problem": "level1/1", "source": make(name)})
            self.expected[name] = status
        file = folder / "many.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.command = ("verify", file, "--suite", suite, *QUICK)

    def kill_at_random(self, kills: int, longest_s: float) -> int:
        """As the program's, with a look at more of what is left after each."""
        return self.program.kill_at_random(
            self.command, kills=kills, longest_s=longest_s, after=self.check_what_is_left
        )

    def check_what_is_left(self) -> None:
        """After a kill: no process, no lock that is held, no half build, nothing new in /dev/shm."""
        left = self.program.left_after(10.0)
        assert left == {}, f"left 10 s after SIGKILL: {left}"
        assert held_locks(self.program.cache) == []
        assert held_locks(Path(os.environ["KERNELPROOF_LOCKS"])) == []
        assert damaged_builds(self.program.cache) == []
        deadline = time.monotonic() + PATIENCE_S
        while not (found := shared_memory()) <= self._shared and time.monotonic() < deadline:
            time.sleep(0.1)
        assert found <= self._shared

    def complete(self) -> dict[str, Status | None]:
        """Runs the command to its end: each candidate has one attempt, and its files go. The statuses."""
        self.program.run(*self.command, code=1, seconds=LONGEST_S)
        again = self.program.run(*self.command, "--json", code=1).stdout
        found = [json.loads(line) for line in again.splitlines()]
        assert all(one["kept"] for one in found)
        assert sorted(one["id"] for one in found) == sorted(self.expected)
        attempts = self.program.attempts()
        assert sorted(one["attempt"] for one in found) == sorted(a.id for a in attempts)
        for attempt in attempts:
            assert [v.kind for v in attempt.verifications] in (["first"], [])
            assert attempt.alterations == ()
        self.check_what_is_left()
        assert self.program.scratch() == []
        by_id = {attempt.id: attempt.status for attempt in attempts}
        return {one["id"]: by_id[one["attempt"]] for one in found}


def damaged_builds(cache: Path) -> list[str]:
    """Entries that the cache would not give to anybody: their record, log or library is not whole."""
    found = entries(cache / "builds")
    return [entry.key for entry in found if BuildCache(cache / "builds").load(entry.key) is None]


def held_locks(folder: Path) -> list[str]:
    """Files below a folder that somebody holds a lock on."""
    held = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(str(path))
        finally:
            os.close(descriptor)
    return held


def shared_memory() -> set[str]:
    """Files in /dev/shm that no process maps: those of other tests' servers and browsers are in use."""
    in_use = "".join(map(_text, Path("/proc").glob("[0-9]*/maps")))
    return {path.name for path in SHARED_MEMORY.iterdir() if str(path) not in in_use}


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # of a process that has ended, or another user's
        return ""


@pytest.mark.slow
def test_killed_twice_it_goes_on(program: Program, suite: Path, tmp_path: Path) -> None:
    program.cache = tmp_path / "cache"
    lines = Lines(program, suite, tmp_path, count=4)
    lines.kill_at_random(2, longest_s=4.0)
    assert lines.complete() == lines.expected


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_killed_twenty_times_ends_as_an_undisturbed_run(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    program.cache = tmp_path / "cache"
    lines = Lines(program, suite, tmp_path, count=30)
    finished = lines.kill_at_random(20, longest_s=8.0)
    killed = lines.complete()
    print(f"{20 - finished} of 20 kills hit a running batch of {len(lines.expected)} candidates")
    assert finished == 0, "the batch was over before the last kill: give it more candidates"
    program.workspace, program.cache = tmp_path / "undisturbed", tmp_path / "other cache"
    program.workspace.mkdir()
    assert lines.complete() == killed == lines.expected
