"""Workers of this machine: builders, and a judge for each GPU, kept running until the launcher ends."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace

from kernelproof.choices import Role
from kernelproof.devices.discovery import VISIBLE
from kernelproof.errors import MachineError, UsageError
from kernelproof.report.plain import say
from kernelproof.service.judging import judged_gpus
from kernelproof.service.launchers.keeping import PATIENCE_S, Child, Keeper, environment_of, options_of
from kernelproof.service.launchers.model import Daemon, Standing, Wanted
from kernelproof.wording import counted
from kernelproof.workspace import cache_directory

BUILDERS = 1
"""A builder has as many places as there are cores."""
_FLOCK = struct.Struct("@hhqqi4x")
"""The C structure `flock` of fcntl(2) on Linux: type, whence, start, length, process."""
_SLACK_S = 20.0
"""Beside PATIENCE_S, for a launcher that was told to end, on a busy machine."""


class Local:
    """The launcher of this machine. Its records stand in `generated/workers/` of the workspace."""

    def __init__(self, wanted: Wanted) -> None:
        shared = None if wanted.builders == 0 else str(cache_directory() / "artefacts")
        self._wanted = replace(wanted, artefacts=wanted.artefacts or shared)
        folder = wanted.place.generated / "workers"
        self._lock, self._state = folder / f"local-{wanted.key}.lock", folder / f"local-{wanted.key}.json"

    def start(self) -> Sequence[Standing]:
        """Keeps the workers running until SIGINT or SIGTERM; then all of them end. Nothing is left."""
        keepers = self._keepers()
        over = threading.Event()
        with self._alone():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: over.set())
            try:
                for keeper in keepers:
                    keeper.start()
                say(f"{counted(len(keepers), 'worker')} on this machine; Ctrl-C ends {_them(keepers)}")
                while not over.wait(0.2):
                    self._write([keeper.standing for keeper in keepers])
            finally:
                for keeper in keepers:
                    keeper.tell()
                for keeper in keepers:
                    keeper.end()
                self._state.unlink(missing_ok=True)
        return []

    def status(self) -> Sequence[Standing]:
        """As the launcher wrote it a moment ago; nothing without a launcher."""
        return [] if self._launcher() is None else self._read()

    def stop(self) -> Sequence[Standing]:
        """Tells the launcher to end, and waits until it did."""
        process = self._launcher()
        if process is None:
            return []
        standing = self._read()
        os.kill(process, signal.SIGTERM)
        until = time.monotonic() + PATIENCE_S + _SLACK_S
        while self._launcher() == process:
            if time.monotonic() > until:
                raise MachineError(f"process {process} keeps the workers and does not end: kill -9 {process}")
            time.sleep(0.05)
        return standing

    def _keepers(self) -> list[Keeper]:
        judged = judged_gpus()
        if judged and (self._wanted.judges or 0) > len(judged):
            found = counted(len(judged), "GPU of the first one's kind", "GPUs of the first one's kind")
            raise UsageError(
                f"--judges {self._wanted.judges}: this machine has {found}, and each has one judge"
            )
        judging = iter(judged)
        keepers = []
        for daemon in self._wanted.daemons(len(judged) or 1, BUILDERS):
            gpu = None if daemon.role is Role.BUILD else next(judging, None)
            keepers.append(self._keeper(daemon, gpu.uuid if gpu else ""))
        return keepers

    def _keeper(self, daemon: Daemon, uuid: str) -> Keeper:
        environment = environment_of(self._wanted) | ({VISIBLE: uuid} if uuid else {})
        return Keeper(Child(daemon.name, options_of(self._wanted, daemon.role), environment), uuid)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raises MachineError where another launcher keeps workers for the same database here."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._lock.open("a") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise MachineError(
                    "workers of this workspace are running: kernelproof workers --local --status, or --stop"
                ) from None
            self._state.unlink(missing_ok=True)  # of a launcher that was killed
            yield

    def _launcher(self) -> int | None:
        """The process that holds the lock; the kernel says which. None without one."""
        try:
            with self._lock.open() as file:
                asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind, *_, process = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
        except FileNotFoundError:
            return None
        return None if kind == fcntl.F_UNLCK else process

    def _write(self, standing: Sequence[Standing]) -> None:
        found = {"machine": socket.gethostname(), "workers": [asdict(each) for each in standing]}
        partial = self._state.with_suffix(".partial")
        partial.write_text(json.dumps(found))
        partial.replace(self._state)

    def _read(self) -> list[Standing]:
        try:
            found = json.loads(self._state.read_text())
        except FileNotFoundError:  # it begins or ends just now
            return []
        if found["machine"] != socket.gethostname():
            raise MachineError(f"the workers of this workspace run on {found['machine']}; ask there")
        return [Standing(**each) for each in found["workers"]]


def _them(keepers: Sequence[Keeper]) -> str:
    return "it" if len(keepers) == 1 else "them"
