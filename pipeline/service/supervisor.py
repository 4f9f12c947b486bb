"""A worker as a child process that is started again whenever it ends; one for each GPU of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kernelproof.choices import Role
from kernelproof.jobs.judge import places as usual_places
from kernelproof.report.plain import say
from kernelproof.service.launchers.model import WorkerCommand
from kernelproof.verifier.devices.discovery import VISIBLE, Gpu, gpus

PATIENCE_S = 10.0
"""Seconds that a worker has to end in order before it is killed."""
PAUSE_S, PAUSES_S = 1.0, 60.0
"""Seconds between a worker's unexpected end and its restart: at first, and at most; it doubles."""
_LOOK_S = 0.2


class Supervisor:
    """Restarts one worker whenever it ends, from `start` to `end`."""

    def __init__(self, name: str, options: Sequence[str], environment: Mapping[str, str]) -> None:
        """`options`: of `kernelproof service workers`. `environment`: beside that of this process; since it
        may hold the database's password, it is never on a command line."""
        self._name, self._options, self._environment = name, options, environment
        self._over = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._failure = self._last = ""
        self._thread = threading.Thread(target=self._supervise, name=f"supervisor of {name}")

    def start(self) -> None:
        """Starts the worker."""
        self._thread.start()

    def request_end(self) -> None:
        """Has the worker end, without waiting for it."""
        self._over.set()

    def end(self) -> None:
        """Ends the worker: in order, and after PATIENCE_S by force."""
        self.request_end()
        self._thread.join()

    @property
    def status(self) -> str:
        """`running` with the process, or `waiting` with the last failure."""
        process = self._process
        if process is not None and process.poll() is None:
            return f"running  process {process.pid}"
        return f"waiting  {self._failure}"

    def _supervise(self) -> None:
        pause = PAUSE_S
        while not self._over.is_set():
            began = time.monotonic()
            process = self._process = self._start_process()
            reader = threading.Thread(target=self._forward_stderr, args=(process,), daemon=True)
            reader.start()
            while process.poll() is None and not self._over.wait(_LOOK_S):
                pass
            if self._over.is_set():
                _end(process)
                break
            reader.join(PAUSE_S)
            self._failure = f"it ended with {process.returncode}: {self._last}"
            pause = PAUSE_S if time.monotonic() - began > PAUSES_S else min(PAUSES_S, pause * 2)
            again = f"kernelproof: {self._name} ended with {process.returncode}; it starts again"
            print(again, file=sys.stderr, flush=True)
            self._over.wait(pause)

    def _start_process(self) -> subprocess.Popen[bytes]:
        """A process that ends when its standard input ends, as it does when this process is gone."""
        source = str(Path(__file__).parents[3])  # the copy that runs here: an actor of Ray has others
        paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
        return subprocess.Popen(
            [sys.executable, "-m", "kernelproof", "service", "workers", "--until-input-ends", *self._options],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **self._environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches this process alone, which ends the worker in order
        )

    def _forward_stderr(self, process: subprocess.Popen[bytes]) -> None:
        """Forwards a worker's standard error, and remembers the last line."""
        assert process.stderr is not None
        for line in process.stderr:
            text = line.decode(errors="replace").rstrip()
            self._last = text or self._last
            print(text, file=sys.stderr, flush=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a worker in order; after PATIENCE_S by force, with what it started."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def judged_gpus() -> tuple[Gpu, ...]:
    """The GPUs that get a judge: the first one and all others of its name. The judge of one that is set aside
    waits until it is put back.

    Where there are others, `CUDA_VISIBLE_DEVICES` chooses.
    """
    return tuple(gpu for gpu in gpus() if gpu.name == gpus()[0].name)


def supervise_judges(command: WorkerCommand, role: Role, stop: threading.Event) -> None:
    """Supervises a judge for each GPU until `stop` is set; then all end.

    `command.places`: of each; where they are 0, those that build as well share what the cores serve.
    """
    judged = judged_gpus()
    if role is Role.ALL and not command.places:
        command = replace(command, places=max(2, usual_places() // len(judged)))
    options, environment = command.options(role), command.environment
    supervisors = [
        Supervisor(f"judge-{number}", options, environment | {VISIBLE: gpu.uuid})
        for number, gpu in enumerate(judged)
    ]
    try:
        for supervisor in supervisors:
            supervisor.start()
        say(f"a judge for each of {', '.join(map(str, judged))}; Ctrl-C ends them")
        stop.wait()
    finally:
        for supervisor in supervisors:
            supervisor.request_end()
        for supervisor in supervisors:
            supervisor.end()
