"""One measurement at a time on each device, over all kernelproof processes of all users of this host.

The lock is flock(2) on a file named for the device, in a directory that every user shares. The kernel gives
it up when the process that holds it ends, however it ends: no lock is ever stale. The file is opened for
reading only and nothing is ever written to it, so a foreign file in its place cannot be harmed.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

DIRECTORY_VARIABLE = "KERNELPROOF_LOCKS"
DEFAULT_DIRECTORY = Path("/tmp/kernelproof-devices")
"""Not below TMPDIR: users with different ones must meet here."""
CPU = "cpu"
"""The key of the processor: one measurement on a host at a time."""

_CREATE_PATIENCE_S = 1.0
"""Another process makes directory or file, and opens them to all a moment later."""


class Unusable(Exception):
    """The directory or the lock in it cannot be used; the message says why."""


def directory() -> Path:
    """`$KERNELPROOF_LOCKS`, else `/tmp/kernelproof-devices`."""
    return Path(os.environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY)


class Hold:
    """A device that is held, or the reason why it cannot be."""

    def __init__(self, key: str, descriptor: int | None, note: str | None) -> None:
        self.key, self.note = key, note
        self._descriptor = descriptor

    def release(self) -> None:
        """Lets go of it; once is enough."""
        if self._descriptor is not None:
            _release(self._descriptor)
            self._descriptor = None


def take(device_key: str, on_wait: Callable[[str], None] = lambda _: None) -> Hold:
    """Holds a device, until it is released: `GPU-...` (its UUID), or `CPU`.

    The hold's `note` is None, or a sentence that says why there is no lock: that is no reason not to measure.
    `on_wait` is called once with a sentence, if another process holds the device. Not reentrant. Raises
    ValueError for a key that is none.
    """
    key = checked_key(device_key)
    try:
        return Hold(key, _descriptor_of(key, on_wait), None)
    except Unusable as error:
        return Hold(key, None, f"measured without the lock on {key}: {error}")


@contextmanager
def held(device_key: str, on_wait: Callable[[str], None] = lambda _: None) -> Iterator[str | None]:
    """Holds a device as `take` does for as long as the block runs; yields the note."""
    hold = take(device_key, on_wait)
    try:
        yield hold.note
    finally:
        hold.release()


def wanted(hold: Hold) -> bool:
    """Whether anybody waits for what is held, as far as can be seen."""
    try:
        turn = _open_lock(_turn(hold.key))
    except Unusable:
        return False
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        _release(turn)
    return False


def trouble() -> str | None:
    """Why locks cannot be had here; None when they can."""
    try:
        os.close(_open_lock(f"{CPU}.lock"))
    except Unusable as error:
        return str(error)
    return None


def checked_key(device_key: str) -> str:
    """The key, if it can be part of a file's name. Raises ValueError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,79}", device_key):
        raise ValueError(f"{device_key!r} is neither a GPU's UUID nor {CPU!r}")
    return device_key


def open_directory() -> int:
    """A descriptor of the directory, which is made if need be. Raises OSError or Unusable.

    A link is not followed. Another user may own the directory, as long as only its owner can remove files of
    others. That owner could then disturb, as any user who may hold a lock could.
    """
    path = directory()
    try:
        path.mkdir(mode=0o700)
        made = True
    except FileExistsError:
        made = False
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if made:
        os.fchmod(descriptor, 0o1777)  # whatever the umask says
    mode = os.fstat(descriptor).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        os.close(descriptor)
        raise Unusable(f"in {path} everybody may remove everybody's files: it needs mode 1777")
    return descriptor


def _descriptor_of(key: str, on_wait: Callable[[str], None]) -> int:
    """A descriptor that holds the device.

    flock promises no order. So a process that waits for the device holds the turn. A process that lets go of
    the device, and wants it again at once, comes after those that wait.
    """
    reported = False

    def blocked() -> None:
        nonlocal reported
        if not reported:
            reported = True
            on_wait(_who_holds(key))

    turn = _locked(_turn(key), blocked)
    try:
        return _locked(f"{key}.lock", blocked)
    finally:
        _release(turn)


def _turn(key: str) -> str:
    return f"{key}.turn"


def _release(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_UN)  # a forked child may have a copy of the descriptor
    os.close(descriptor)


def _locked(name: str, blocked: Callable[[], None]) -> int:
    """A descriptor that holds the lock of a file; `blocked` is called where another process holds it."""
    while True:
        descriptor = _open_lock(name)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                blocked()
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _still_there(name, descriptor):
                return descriptor
        except OSError as error:
            os.close(descriptor)
            raise Unusable(f"{directory() / name} cannot be locked ({error.strerror})") from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # somebody removed it meanwhile, and others lock another file by that name


def _open_lock(name: str) -> int:
    deadline = time.monotonic() + _CREATE_PATIENCE_S
    while True:
        try:
            place = open_directory()
            try:
                return _opened(name, place)
            finally:
                os.close(place)
        except (FileNotFoundError, FileExistsError, PermissionError) as error:
            if time.monotonic() >= deadline:
                raise Unusable(f"{directory() / name} cannot be opened ({error.strerror})") from None
        except OSError as error:
            raise Unusable(f"{directory() / name} cannot be opened ({error.strerror})") from None
        time.sleep(0.02)


def _opened(name: str, place: int) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=place)
    except FileNotFoundError:
        descriptor = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=place)
        os.fchmod(descriptor, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Unusable(f"{directory() / name} is not a regular file")
    return descriptor


def _still_there(name: str, descriptor: int) -> bool:
    mine = os.fstat(descriptor)
    try:
        place = open_directory()
    except (OSError, Unusable):
        return False
    try:
        there = os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    finally:
        os.close(place)
    return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)


def _who_holds(key: str) -> str:
    descriptor = _open_lock(f"{key}.lock")
    try:
        pid = _holder(descriptor)
    finally:
        os.close(descriptor)
    who = f"process {pid}" if pid else "another kernelproof process"
    return f"waiting for {key}: {who} is measuring on it"


def _holder(descriptor: int) -> int | None:
    """The process that locked the file, as the kernel lists it; None where it does not, or cannot, say."""
    status = os.fstat(descriptor)
    mark = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if fields[1:2] == ["FLOCK"] and fields[5:6] == [mark] and fields[4].isdigit():
            return int(fields[4]) or None
    return None
