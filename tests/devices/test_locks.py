"""The lock on a device: real processes contend for it, and what others put in its place does no harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelproof.verifier.devices import locks
from kernelproof.verifier.sandbox import Group, Job, Scratch, python_paths
from tests.devices.holders import HOLD, KEY, Holder, let_go, line

CONTEND = f"""
import os, sys, time
from kernelproof.verifier.devices import locks as exclusive
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
for _ in range(5):
    with exclusive.held({KEY!r}):
        os.write(log, f"in {{os.getpid()}}\\n".encode())
        time.sleep(0.002)
        os.write(log, f"out {{os.getpid()}}\\n".encode())
"""
DESCRIPTORS = """
import os
for name in os.listdir("/proc/self/fd"):
    try:
        print(os.readlink(f"/proc/self/fd/{name}"))
    except OSError:  # the one that was used for the listing
        pass
"""


def test_the_second_waits_for_the_first_and_knows_it(start: Callable[..., Holder]) -> None:
    first = start(HOLD)
    assert line(first) == "held"
    second = start(HOLD)
    assert line(second) == f"waiting for {KEY}: process {first.pid} is measuring on it"
    third = start(HOLD)
    assert line(third).startswith("waiting for")
    let_go(first)
    let_go(second)
    assert line(second) == "held"
    assert line(third) == "held"


def test_a_killed_holder_holds_nothing(start: Callable[..., Holder]) -> None:
    first = start(HOLD)
    assert line(first) == "held"
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = start(HOLD)
    assert line(second) == "held"


def test_no_two_processes_are_inside_at_once(start: Callable[..., Holder], tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    for process in [start(CONTEND, str(log)) for _ in range(4)]:
        assert process.wait() == 0
    lines = log.read_text().splitlines()
    assert len(lines) == 40
    for entered, left in zip(lines[::2], lines[1::2], strict=True):
        assert entered.split() == ["in", left.split()[1]]


def test_threads_of_one_process_exclude_each_other(place: Path) -> None:
    inside: list[str] = []

    def other() -> None:
        with locks.held(KEY, lambda _: inside.append("waits")):
            inside.append("other")

    with locks.held(KEY):
        thread = threading.Thread(target=other)
        thread.start()
        while not inside:
            time.sleep(0.001)
        inside.append("first")
    thread.join()
    assert inside == ["waits", "first", "other"]


def test_two_devices_have_two_locks(place: Path) -> None:
    waited: list[str] = []
    with locks.held(KEY, waited.append) as one, locks.held(locks.CPU, waited.append) as two:
        assert (one, two, waited) == (None, None, [])


@pytest.mark.parametrize("umask", [0o077, 0o022, 0o000])
def test_every_user_may_lock_whatever_the_umask_is(place: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with locks.held(KEY):
            assert place.stat().st_mode & 0o7777 == 0o1777
            assert next(place.iterdir()).stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, as they may not pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_waits_too(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(locks.DIRECTORY_VARIABLE, str(open_folder / "locks"))
    reading, writing = os.pipe()

    def waits(_: str) -> None:
        os.write(writing, b"waits ")

    with locks.held(KEY):
        child = os.fork()
        if child == 0:
            os.setresuid(65534, 65534, 65534)
            with locks.held(KEY, waits) as note:
                os.write(writing, b"held" if note is None else note.encode())
            os._exit(0)
        assert os.read(reading, 100) == b"waits "
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reading, 100) == b"held"
    os.close(reading)
    os.close(writing)


def refused(expected: str) -> None:
    with locks.held(KEY) as note:
        assert note is not None and KEY in note and expected in note


def test_a_link_in_place_of_the_lock_is_not_followed(place: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("as it was")
    with locks.held(locks.CPU):  # makes the directory
        pass
    (place / f"{KEY}.lock").symlink_to(target)
    refused("cannot be opened")
    (place / f"{KEY}.lock").unlink()
    (place / f"{KEY}.lock").symlink_to(tmp_path / "not there")
    refused("cannot be opened")
    assert target.read_text() == "as it was" and target.stat().st_mode & 0o777 != 0o666
    assert not (tmp_path / "not there").exists()


def test_a_link_in_place_of_the_directory_is_not_followed(place: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    refused("cannot be opened")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_pipe_in_place_of_the_lock_does_not_hang(place: Path) -> None:
    with locks.held(locks.CPU):
        pass
    os.mkfifo(place / f"{KEY}.lock")
    refused("is not a regular file")


def test_a_directory_where_anybody_may_remove_files_is_refused(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)
    refused("mode 1777")
    assert locks.trouble() is not None
    place.chmod(0o1777)
    assert locks.trouble() is None


def test_a_directory_that_cannot_be_made_costs_the_lock_only(place: Path) -> None:
    place.parent.joinpath("locks").write_text("a file is here already")
    refused("cannot be opened")


def test_a_private_directory_keeps_its_mode(place: Path) -> None:
    place.mkdir(mode=0o700)
    with locks.held(KEY) as note:
        assert note is None
    assert place.stat().st_mode & 0o7777 == 0o700


def test_who_waited_for_a_removed_file_holds_the_one_that_is_there(place: Path) -> None:
    waits, has, enough = threading.Event(), threading.Event(), threading.Event()
    told: list[str] = []

    def other() -> None:
        with locks.held(KEY, lambda _: waits.set()):
            has.set()
            assert enough.wait(60)

    def third(text: str) -> None:
        told.append(text)
        enough.set()

    thread = threading.Thread(target=other)
    with locks.held(KEY):
        thread.start()
        assert waits.wait(60)
        (place / f"{KEY}.lock").unlink()
    assert has.wait(60)
    with locks.held(KEY, third):  # were it a lock on the old file, nobody would have to wait here
        pass
    thread.join()
    assert len(told) == 1


def test_who_comes_back_at_once_comes_after_who_waits(place: Path) -> None:
    times = 0
    done = threading.Event()

    def again_and_again() -> None:
        nonlocal times
        while not done.is_set():
            with locks.held(KEY):
                times += 1
                time.sleep(0.02)

    thread = threading.Thread(target=again_and_again)
    thread.start()
    for _ in range(10):
        while not times:
            time.sleep(0.001)
        before = times
        with locks.held(KEY):
            assert times <= before + 2
    done.set()
    thread.join()


@pytest.mark.parametrize("key", ["", "../GPU", "a/b", ".hidden", "GPU 1", "x" * 100, "GPU-1\n"])
def test_a_key_that_is_no_device_is_refused(place: Path, key: str) -> None:
    with pytest.raises(ValueError), locks.held(key):
        pass
    assert not place.exists()


def test_what_we_start_does_not_inherit_the_lock(place: Path) -> None:
    argv = [sys.executable, "-c", DESCRIPTORS]
    with locks.held(KEY):
        seen = subprocess.run(argv, capture_output=True, text=True, close_fds=False, check=True)
    assert "pipe:" in seen.stdout and KEY not in seen.stdout


def test_a_contestant_neither_sees_nor_takes_the_lock(place: Path) -> None:
    program = f"""{DESCRIPTORS}
import fcntl
try:
    fcntl.flock(os.open({str(place / f"{KEY}.lock")!r}, os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)
    print("taken")
except OSError as error:
    print("refused", type(error).__name__)
"""
    with locks.held(locks.CPU), Scratch() as scratch:
        with locks.held(KEY):  # lets go: only the walls can keep the contestant from taking it
            pass
        argv = (sys.executable, "-I", "-c", program)
        outcome = Group().run(Job(argv, scratch.path, python_paths()))
    assert outcome.state == "ok", outcome
    assert "refused" in outcome.stdout and "taken" not in outcome.stdout
    assert str(place) not in outcome.stdout
