"""The installed program as a person runs it: real processes, and a look at which of them are left."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from kernelproof.db.store import Store, open_store
from kernelproof.db.views import StoredAttempt
from kernelproof.types import Status
from tests import terminal
from tests.cli import prestarted

ROOT = Path(__file__).parents[2]
# -P: as the installed command, which imports nothing from where it is called
PROGRAM = (sys.executable, "-P", "-c", "from kernelproof.cli.app import main; main()")
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


@dataclass
class Program:
    """kernelproof in one workspace. `temporary` is its TMPDIR, in which nothing else works."""

    workspace: Path
    temporary: Path
    cache: Path
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The caller's variables, without keys and settings of theirs."""
        foreign = ("OPENAI_", "KERNELPROOF_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        return kept | {
            "KERNELPROOF_WORKSPACE": str(self.workspace),
            "KERNELPROOF_CACHE": str(self.cache),
            "KERNELPROOF_LOCKS": os.environ["KERNELPROOF_LOCKS"],
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(ROOT / "src"),
            **self.extra,
        }

    def start(self, *arguments: object, directory: Path | None = None) -> subprocess.Popen[str]:
        """Starts a command in a session of its own; in the workspace, unless a `directory` is given."""
        return subprocess.Popen(
            [*PROGRAM, *map(str, arguments)],
            env=self.environment,
            cwd=directory or self.workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=prestarted.interruptible,
        )

    def run(
        self, *arguments: object, code: int | None = 0, seconds: float = 240.0
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end, which has to be exit code `code` (None: any) without a traceback.

        `seconds`: most that it may take.
        """
        done = self._started_anew(arguments, seconds) if self._own_start else self._forked(arguments, seconds)
        assert code is None or done.returncode == code, (
            f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    @property
    def _own_start(self) -> bool:
        """Whether what is to be tried may change how Python starts, or which modules it finds."""
        return any(name.startswith(("PYTHON", "LC_", "LANG")) for name in self.extra)

    def _started_anew(self, arguments: Sequence[object], seconds: float) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        stdout, stderr = process.communicate(timeout=seconds)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def _forked(self, arguments: Sequence[object], seconds: float) -> subprocess.CompletedProcess[str]:
        ours, theirs = os.pipe()
        with ThreadPoolExecutor(1) as reader:
            output = reader.submit(_read, ours)
            code, errors = self.into(theirs, *arguments, seconds=seconds)
            return subprocess.CompletedProcess(
                [*PROGRAM, *map(str, arguments)], code, output.result(), errors
            )

    def into(self, stdout: int, *arguments: object, seconds: float = 120.0) -> tuple[int, str]:
        """Exit code and errors of a command that writes to this descriptor, which is closed here."""
        ours, theirs = os.pipe()
        with Path(os.devnull).open() as nothing:
            command = prestarted.start(
                arguments,
                environment=self.environment,
                directory=self.workspace,
                streams=[nothing.fileno(), stdout, theirs],
            )
        os.close(stdout)
        os.close(theirs)
        with ThreadPoolExecutor(1) as reader:
            errors = reader.submit(_read, ours)
            return command.wait(seconds), errors.result()

    def on_terminal(self, *arguments: object, columns: int = 120, seconds: float = 120.0) -> tuple[int, str]:
        """Exit code of a command on a terminal without a pager, and all that it wrote there."""
        screen = {"TERM": "xterm-256color", "PAGER": "cat", "COLUMNS": "", "LINES": ""}
        code, seen = self.typed(arguments, columns=columns, seconds=seconds, extra=screen)
        return code, seen.decode(errors="replace")

    def typed(
        self,
        arguments: Sequence[object],
        *,
        columns: int,
        rows: int = 40,
        seconds: float = 60.0,
        extra: Mapping[str, str],
        keys: bytes = b"",
        after: bytes = b"",
    ) -> tuple[int, bytes]:
        """The same with `extra` variables; `keys` are typed once `after` is shown."""
        ours, theirs = terminal.opened(columns, rows)
        command = prestarted.start(
            arguments,
            environment={**self.environment, **extra},
            directory=self.workspace,
            streams=[theirs] * 3,
        )
        os.close(theirs)
        seen = b""
        for piece in terminal.pieces(ours, seconds):
            seen += piece
            if keys and after in seen:
                os.write(ours, keys)
                keys = b""
        return command.wait(60.0), seen

    def store(self) -> Store:
        """The workspace's store, which must be there."""
        return open_store(self.workspace / "db" / "attempts.sqlite", create=False)

    def attempts(self) -> list[StoredAttempt]:
        """Everything stored, in the order in which it was begun."""
        with self.store() as store:
            return [store.load_attempt(number) for number in range(1, (store.latest_attempt_id() or 0) + 1)]

    def statuses(self) -> dict[tuple[str, int, int], Status | None]:
        """(problem, sample, turn) to status, over all runs, which must not overlap."""
        found = [((a.key.problem_id, a.key.sample, a.key.turn), a.status) for a in self.attempts()]
        assert len(found) == len(dict(found)), f"an attempt is there twice: {found}"
        return dict(found)

    def processes(self) -> dict[int, str]:
        """Live processes that belong to a command of this workspace: orchestrator, referee, sandboxes.

        Each has the temporary directory in its environment (a sandbox as its HOME), command or directory.
        """
        mark = str(self.temporary).encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and mark in (seen := _seen(entry)):
                found[int(entry.name)] = seen.replace(b"\0", b" ").decode(errors="replace")[:300]
        return found

    def left_after(self, seconds: float = 10.0) -> dict[int, str]:
        """Processes that are still there after at most so long."""
        deadline = time.monotonic() + seconds
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left

    def scratch(self) -> list[str]:
        """What lies in the temporary directory."""
        return sorted(path.name for path in self.temporary.iterdir() if path.name.startswith("kernelproof-"))

    def wait_for_process(self, words: str, process: subprocess.Popen[str], seconds: float = 60.0) -> None:
        """Until some process of this workspace has `words` in its command; `process` must not end before."""
        deadline = time.monotonic() + seconds
        while not any(words in command for command in self.processes().values()):
            assert process.poll() is None, f"ended too early: {process.communicate()}"
            assert time.monotonic() < deadline, f"no {words} came: {self.processes()}"
            time.sleep(0.02)


def mounted(script: str, place: Path) -> list[str]:
    """A command line that mounts a folder for what follows it; skips the test where that is not allowed."""
    prefix = ["unshare", "--mount", "sh", "-c", script, str(place)]
    allowed = os.geteuid() == 0 and shutil.which("unshare") is not None
    if not allowed or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("this user may mount nothing")
    return prefix


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL, to this process alone."""
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


def kill_tree(process: subprocess.Popen[str]) -> None:
    """SIGKILL to a command and to all that it started, in any order."""
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(process.pid)
        every = [root, *root.children(recursive=True)]
        random.shuffle(every)
        for one in every:
            with suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


def _read(pipe: int) -> str:
    with os.fdopen(pipe) as file:
        return file.read()


def _seen(process: Path) -> bytes:
    """Command line, directory and environment as far as they can be read; nothing of a zombie."""
    try:
        seen = (process / "cmdline").read_bytes()
    except OSError:
        return b""
    for read in (lambda: bytes((process / "cwd").readlink()), (process / "environ").read_bytes):
        try:
            seen += b"\0" + read()
        except OSError:
            continue
    return seen
