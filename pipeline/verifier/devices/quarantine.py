"""Which GPUs must not be used, as files beside the locks: every kernelproof process of the host sees them.

A record lasts until `kernelproof doctor --lift-quarantine` has seen the GPU pass its canary, or until the
directory for temporary files is emptied, as most machines do when they start: that resets a GPU, too.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from datetime import UTC, datetime

from pydantic import ValidationError

from kernelproof.types import Quarantine
from kernelproof.verifier.devices.locks import Unusable, checked_key, directory, open_directory

MOST_BYTES = 1 << 16
"""A longer file is no record of ours."""


def impose(uuid: str, reason: str) -> str | None:
    """Writes a GPU's record, in place of an earlier one of ours; None, or why that could not be done."""
    record = Quarantine(
        uuid=uuid, reason=reason, since=datetime.now(UTC).isoformat(timespec="seconds"), pid=os.getpid()
    )
    partial = f".{checked_key(uuid)}.{os.getpid()}"
    try:
        place = open_directory()
        try:
            with suppress(FileNotFoundError):  # of a process that had our number and was killed
                os.unlink(partial, dir_fd=place)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(partial, flags, 0o644, dir_fd=place), "w") as file:
                os.fchmod(file.fileno(), 0o644)
                file.write(record.model_dump_json(indent=1))
            os.rename(partial, _name(uuid), src_dir_fd=place, dst_dir_fd=place)
        finally:
            os.close(place)
    except (OSError, Unusable) as error:
        return f"the quarantine could not be written down: {error}"
    return None


def find(uuid: str) -> Quarantine | None:
    """A GPU's record, None without one.

    A file that is not readable as a record still counts: something had put the GPU aside, and to use a broken
    GPU costs more than to look at a good one.
    """
    path = directory() / _name(uuid)
    try:
        place = open_directory()
    except (OSError, Unusable):
        return None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(_name(uuid), flags, dir_fd=place)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _unreadable(uuid, f"{path} cannot be opened: {error.strerror}")
    finally:
        os.close(place)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return _unreadable(uuid, f"{path} is not a regular file")
        text = file.read(MOST_BYTES + 1)
    try:
        record = Quarantine.model_validate_json(text)
    except ValidationError:
        return _unreadable(uuid, f"{path} is not a record that this version can read")
    if record.uuid != uuid:
        return _unreadable(uuid, f"{path} is another GPU's record")
    return record.model_copy(update={"reason": _plain(record.reason), "since": _plain(record.since)})


def lift(uuid: str) -> str | None:
    """Removes a GPU's record; None, or why that could not be done."""
    try:
        place = open_directory()
        try:
            os.unlink(_name(uuid), dir_fd=place)
        finally:
            os.close(place)
    except FileNotFoundError:
        return None
    except (OSError, Unusable) as error:
        return f"{directory() / _name(uuid)} could not be removed: {error}"
    return None


def _name(uuid: str) -> str:
    return f"{checked_key(uuid)}.quarantine.json"


def _unreadable(uuid: str, reason: str) -> Quarantine:
    return Quarantine(uuid=uuid, reason=reason, since="at an unknown time", pid=0)


def _plain(text: str) -> str:
    """Anybody can write a record: the part of it that is shown moves no cursor."""
    return "".join(c if c.isprintable() else " " for c in text)
