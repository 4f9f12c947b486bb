"""Does a GPU still compute right? Asked of a fresh process, after a candidate has left the GPU in disorder.

`python -m kernelproof.verifier.canary cuda:0` says `up` when it has imported what it needs. For each line
that it reads it runs small kernels whose results are whole numbers, known exactly (after `reach` it only
copies a word there and back), and says `healthy`, or what was wrong; after `go` it ends. It holds for the
kernels that ran and the memory that they touched: a GPU that passes may be broken elsewhere, one that fails
must not be used.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelproof import version
from kernelproof.errors import DeviceUnfit
from kernelproof.verifier.devices import quarantine

TIME_LIMIT_S = 60.0
"""A healthy GPU takes about 3 s, torch's import included; a cold disk takes longer, a hung GPU for ever."""
KILL_PATIENCE_S = 5.0
"""How long a killed process may take to be gone; one that is stuck in the driver is left behind."""
UP, REACH, CHECK, GO, HEALTHY = "up", "reach", "check", "go", "healthy"
"""Lines between canary and caller: the canary says UP and HEALTHY, the caller REACH and CHECK (more to come)
and GO (last)."""
PROGRAM = (sys.executable, "-P", "-m", "kernelproof.verifier.canary")


class Reserve:
    """A canary that is up before it is needed: it has imported torch, most of its time, has reached its GPU
    and run its probes once, so that the GPU has its kernels. It ends with the process that keeps it."""

    def __init__(self) -> None:
        self._waiting: subprocess.Popen[str] | None = None
        self._device = ""
        self._heard: list[str] = []
        """Its lines so far."""
        self._checking = False

    def refill(self, device: str, cores: Sequence[int] = ()) -> None:
        """Has one for `device`, which comes up on `cores` (none named: on all). Returns before it is up.

        Has none where no process can be started: `confirm` then starts one.
        """
        if self._waiting is not None and self._waiting.poll() is None and self._device == device:
            return
        self.close()
        with contextlib.suppress(OSError):
            self._waiting, self._device = _started(PROGRAM, device, cores=cores), device

    def prepare(self) -> None:
        """Has a canary that is up reach its GPU, and run its probes the next time: both are slow the first
        time. `settle` waits for the end of that."""
        if self._checking and self._listen(0):
            self._conclude(in_time=True)
        found, steps = self._waiting, {1: REACH, 2: CHECK}
        if found is None or self._checking or not (self._heard or self._listen(0)):
            return
        if len(self._heard) in steps:
            self._checking = _sent(found, steps[len(self._heard)])

    def settle(self, seconds: float = TIME_LIMIT_S) -> None:
        """Waits for the end of `prepare`. A canary that is late or finds a fault is ended; it accuses no GPU
        yet, as there was no reason for a doubt."""
        if self._checking:
            self._conclude(in_time=self._listen(seconds))

    def _conclude(self, *, in_time: bool) -> None:
        self._checking = False
        if not (in_time and self._heard[-1] == HEALTHY):
            self.close()

    def content(self, device: str, seconds: float = TIME_LIMIT_S) -> bool:
        """Whether the canary for `device`, asked now and never again, says that all is right; False where
        there is none. Its end is not waited for: a process with a CUDA context takes a third of a second to
        end.
        """
        self.settle()
        found = self._waiting
        if found is None or device != self._device:
            return False
        _sent(found, GO)
        right = self._listen(seconds) and (self._heard != [UP] or self._listen(seconds))
        right = right and self._heard[-1] == HEALTHY
        self._waiting, self._heard = None, []
        threading.Thread(target=_ended, args=(found,), daemon=True).start()
        return right

    def close(self) -> None:
        """Ends it. Safe to call twice."""
        found, self._waiting = self._waiting, None
        self._heard, self._checking = [], False
        if found is not None:
            _ended(found)

    def _listen(self, seconds: float) -> bool:
        """Hears one more line, if it comes in time. It says no more than one at a time."""
        found = self._waiting
        if found is None or found.stdout is None:
            return False
        said = select.poll()
        said.register(found.stdout, select.POLLIN)
        if not said.poll(1000 * seconds):
            return False
        self._heard.append(found.stdout.readline().strip())
        return True


def confirm(
    device: str,
    uuid: str | None,
    after: str,
    environment: Mapping[str, str] | None = None,
    reserve: Reserve | None = None,
) -> None:
    """Looks whether a GPU is still fit to be used; nothing is asked of a CPU (`uuid` None).

    `device` is torch's name for it, here or with `environment` added, `after` what made us ask (`a crash`).
    The caller holds the GPU's lock. Raises DeviceUnfit when the canary fails; the GPU is then quarantined.
    Where the canary in `reserve` fails another is asked: the candidate may have harmed the first.
    """
    if uuid is None:
        return
    if reserve is not None and reserve.content(device):
        return
    trouble = check(device, environment=environment)
    if trouble is None:
        return
    reason = f"it failed the canary after {after}: {trouble}"
    unwritten = quarantine.impose(uuid, reason)
    raise DeviceUnfit(f"{uuid} was quarantined: {reason}" + (f" ({unwritten})" if unwritten else ""))


def check(
    device: str,
    *,
    environment: Mapping[str, str] | None = None,
    seconds: float = TIME_LIMIT_S,
    program: Sequence[str] = PROGRAM,
) -> str | None:
    """None when `device` (`cuda:0`, `cpu`) computes right, else what a new process of `program` saw, with
    `environment` added to ours.

    The process and all it started are gone afterwards, unless the driver does not let go of them.
    """
    process = _started(program, device, environment)
    try:
        said, complaint = process.communicate(f"{GO}\n", timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:g} s" + _ended(process)
    except BaseException:
        _ended(process)
        raise
    lines = [line for line in said.splitlines() if line.strip() not in ("", UP)]
    if process.returncode == 0 and lines[-1:] == [HEALTHY]:
        return None
    last = (lines or complaint.strip().splitlines())[-1:] or ["it said nothing"]
    return f"{last[0][:500]} ({_ending(process.returncode)})"


def _started(
    program: Sequence[str],
    device: str,
    environment: Mapping[str, str] | None = None,
    cores: Sequence[int] = (),
) -> subprocess.Popen[str]:
    root = str(Path(version.__file__).parent.parent)
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [*program, device, *map(str, cores)],
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _sent(process: subprocess.Popen[str], word: str) -> bool:
    """Sends a canary a line; False when it has ended."""
    assert process.stdin is not None
    try:
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
    except OSError:
        return False
    return True


def _ended(process: subprocess.Popen[str]) -> str:
    """Kills the process with its group; empty, or that it is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.communicate(timeout=KILL_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f", and process {process.pid} could not be killed"
    return ""


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
