"""A worker as a child process that is started again whenever it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelproof.choices import Role
from kernelproof.service.artefact_places import is_address
from kernelproof.service.launchers.model import Standing, Wanted
from kernelproof.workspace import DATABASE_VARIABLE, WORKSPACE_VARIABLE, address

PATIENCE_S = 10.0
"""A worker that is told to end has so long before it is killed."""
PAUSE_S = 1.0
"""Between a worker's unexpected end and the start of another one, at first; it doubles up to PAUSES_S."""
PAUSES_S = 60.0
STORE_VARIABLES = ("AWS_", "FSSPEC_")
"""Beginnings of variables that say where an artefact store is, and hold the credentials for it."""
_LOOK_S = 0.2


@dataclass(frozen=True)
class Child:
    """A worker's process as it is started."""

    name: str
    options: Sequence[str]
    """Of `kernelproof workers`."""
    environment: Mapping[str, str] = field(repr=False)
    """Beside that of this process. It may hold the database's password, so it is never on a command line."""

    def start(self) -> subprocess.Popen[bytes]:
        """Starts it. It ends when its standard input ends, as it does when this process is gone."""
        # The copy that runs here: an actor of Ray and a job of Slurm have other ways to find it.
        source = str(Path(__file__).parents[3])
        paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
        return subprocess.Popen(
            [sys.executable, "-m", "kernelproof", "workers", "--until-input-ends", *self.options],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **self.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches this process alone, which ends the worker in order
        )


def options_of(wanted: Wanted, role: Role) -> list[str]:
    """The options on a worker's command line, which everybody on the machine sees."""
    words = [] if role is Role.ALL else ["--role", role]
    words += ["--places", str(wanted.places)] if wanted.places else []
    words += ["--artefacts", wanted.artefacts] if wanted.artefacts else []
    return [*words, *(["--unsafe"] if wanted.unsafe else [])]


def environment_of(wanted: Wanted) -> dict[str, str]:
    """The variables of a worker on any machine: they say where the database is, and how S3 is reached where
    artefacts lie at an address."""
    away = wanted.artefacts is not None and is_address(wanted.artefacts)
    return {
        DATABASE_VARIABLE: address(wanted.place.database),
        WORKSPACE_VARIABLE: str(wanted.place.root),
        **{name: value for name, value in os.environ.items() if away and name.startswith(STORE_VARIABLES)},
    }


class Keeper:
    """Keeps one worker running, from `start` to `end`."""

    def __init__(self, child: Child, device: str = "", *, always: bool = True) -> None:
        """`device`: the UUID of its GPU. `always`: also when it ended in order, since somebody told it to."""
        self.child, self._device, self._always = child, device, always
        self._over = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._ends = 0
        self._code: int | None = None
        self._last = ""
        self._thread = threading.Thread(target=self._keep, name=f"keeper of {child.name}")

    def start(self) -> None:
        """Starts the worker, and starts it again when it ends."""
        self._thread.start()

    def tell(self) -> None:
        """Has the worker end, without waiting for it."""
        self._over.set()

    def wait(self) -> None:
        """Until the worker has ended and is not started again."""
        self._thread.join()

    def end(self) -> None:
        """Ends the worker: in order, and after PATIENCE_S by force."""
        self.tell()
        self._thread.join()

    @property
    def standing(self) -> Standing:
        """How the worker stands."""
        process = self._process
        up = process is not None and process.poll() is None
        state = "running" if up else "ended" if self._over.is_set() else "waiting"
        note = f"exit code {self._code}, end {self._ends}: {self._last}" if self._ends else ""
        where = f"process {process.pid}" if up and process is not None else ""
        return Standing(self.child.name, state, where, self._device, note)

    def _keep(self) -> None:
        pause = PAUSE_S
        while not self._over.is_set():
            began = time.monotonic()
            process = self._process = self.child.start()
            said = threading.Thread(target=self._pass_on, args=(process,), daemon=True)
            said.start()
            while process.poll() is None and not self._over.wait(_LOOK_S):
                pass
            if self._over.is_set():
                end_process(process)
                break
            said.join(PAUSE_S)
            if process.returncode == 0 and not self._always:
                self._over.set()
                break
            self._ends, self._code = self._ends + 1, process.returncode
            pause = PAUSE_S if time.monotonic() - began > PAUSES_S else min(PAUSES_S, pause * 2)
            print(
                f"kernelproof: {self.child.name} ended with {process.returncode}; it starts again",
                file=sys.stderr,
                flush=True,
            )
            self._over.wait(pause)

    def _pass_on(self, process: subprocess.Popen[bytes]) -> None:
        """Hands on what a worker complains of, and remembers the last line."""
        assert process.stderr is not None
        for line in process.stderr:
            text = line.decode(errors="replace").rstrip()
            self._last = text or self._last
            print(text, file=sys.stderr, flush=True)


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Ends a worker in order; after PATIENCE_S by force, with what it started."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
