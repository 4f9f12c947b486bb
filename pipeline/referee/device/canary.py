"""Does a GPU still compute right? Asked of a fresh process, after a candidate has left the GPU in disorder.

`python -m pipeline.referee.device.canary cuda:0` says `up` when it has imported what it needs. For each line
that it reads it runs small kernels whose results are whole numbers, known exactly, and says `healthy`, or
what was wrong; after `go` it ends. It holds for the kernels that ran and the memory that they touched: a GPU
that passes may be broken elsewhere, one that fails must not be used.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import version
from pipeline.errors import DeviceUnfit
from pipeline.referee.device import quarantine

if TYPE_CHECKING:
    import torch

TIME_LIMIT_S = 60.0
"""A healthy GPU takes about 3 s, torch's import included; a cold disk takes longer, a hung GPU for ever."""
KILL_PATIENCE_S = 5.0
"""How long a killed process may take to be gone; one that is stuck in the driver is left behind."""
PATTERN_BYTES = 256 << 20
LEAST_BYTES = 16 << 20
UP, SING, GO, HEALTHY = "up", "sing", "go", "healthy"
"""What is said: by the canary when it is up, to it (once more; for the last time), and by it."""
PROGRAM = (sys.executable, "-P", "-m", "pipeline.referee.device.canary")

Probe = Callable[["torch.device"], str | None]
"""Runs something with a known result; None, or what was wrong."""


class Reserve:
    """A canary that is up before it is needed: it has imported torch, most of its time, and has sung once, so
    that the GPU knows its kernels. It ends when its keeper does."""

    def __init__(self) -> None:
        self._waiting: subprocess.Popen[str] | None = None
        self._device = ""
        self._heard: list[str] = []
        """What it has said."""
        self._singing = False

    def refill(self, device: str, cores: Sequence[int] = ()) -> None:
        """Has one for `device`, which comes up on `cores` (none named: on all). Returns before it is up.

        None where no process can be started: whoever needs one is told then.
        """
        if self._waiting is not None and self._waiting.poll() is None and self._device == device:
            return
        self.close()
        with contextlib.suppress(OSError):
            self._waiting, self._device = _started(PROGRAM, device, cores=cores), device

    def prepare(self) -> None:
        """Lets one that is up sing for the first time. Returns before it has; `settle` waits for that."""
        found = self._waiting
        if found is None or self._heard or not self._listen(0):
            return
        self._singing = _told(found, SING)

    def settle(self, seconds: float = TIME_LIMIT_S) -> None:
        """Waits for what `prepare` began. One that is not done then, or is not content, is ended: whether the
        GPU is unfit is asked when there is a reason to."""
        if not self._singing:
            return
        self._singing = False
        if not (self._listen(seconds) and self._heard[-1] == HEALTHY):
            self.close()

    def content(self, device: str, seconds: float = TIME_LIMIT_S) -> bool:
        """Whether the one for `device`, asked now and never again, says that all is right; False where there
        is none. Nobody waits for its end: a process with a CUDA context takes a third of a second for that.
        """
        self.settle()
        found = self._waiting
        if found is None or device != self._device:
            return False
        _told(found, GO)
        right = self._listen(seconds) and (self._heard != [UP] or self._listen(seconds))
        right = right and self._heard[-1] == HEALTHY
        self._waiting, self._heard = None, []
        threading.Thread(target=_ended, args=(found,), daemon=True).start()
        return right

    def close(self) -> None:
        """Ends it. Safe to call twice."""
        found, self._waiting = self._waiting, None
        self._heard, self._singing = [], False
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
    Whoever calls holds the GPU's lock. Raises DeviceUnfit when the canary fails; the GPU is then quarantined.
    Where the one in `reserve` fails another is asked: that one may have been harmed with what came before.
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


def _told(process: subprocess.Popen[str], word: str) -> bool:
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


def product(device: torch.device) -> str | None:
    """A matrix product of whole numbers, once on the plain and once on the half-precision units.

    Every partial sum is exact: below 1024 * 4 * 4 = 2^14 in float32, and below 64 * 4 * 4 = 2^10 in float16,
    which hold whole numbers up to 2^24 and 2^11.
    """
    import torch

    for dtype, inner in ((torch.float32, 1024), (torch.float16, 64)):
        left, right, wanted = _factors(inner)
        got = left.to(device, dtype) @ right.to(device, dtype)
        wrong = int((got.cpu().double() != wanted).sum())
        if wrong:
            return f"{wrong} of {wanted.numel()} elements of a {dtype} matrix product are wrong"
    return None


@functools.cache
def _factors(inner: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two matrices of whole numbers from -4 to 4, 1024 x inner and inner x 1024, and their product."""
    import torch

    rows = torch.arange(1024).view(-1, 1)
    columns = torch.arange(inner).view(1, -1)
    left = (rows * 7 + columns * 3) % 9 - 4
    right = ((rows * 5 + columns * 11) % 9 - 4).t().contiguous()
    return left, right, left.double() @ right.double()


def pattern(device: torch.device) -> str | None:
    """A few hundred MiB written with a pattern, read back, inverted and read again; and its checksum.

    Word i holds i * factor modulo 2^64, so the sum of n words is factor * n (n - 1) / 2 modulo 2^64.
    """
    import torch

    size = PATTERN_BYTES if device.type == "cuda" else LEAST_BYTES
    if device.type == "cuda":
        size = min(size, torch.cuda.mem_get_info(device)[0] // 4)  # three more of this size come and go
        if size < LEAST_BYTES:
            return f"only {torch.cuda.mem_get_info(device)[0] >> 20} MiB of its memory are free"
    count, factor = size // 8, 0x9E3779B97F4A7C15 - (1 << 64)
    words = torch.arange(count, device=device)
    words *= factor
    wanted = (factor * (count * (count - 1) // 2)) % (1 << 64)
    if int(words.sum()) % (1 << 64) != wanted:
        return f"the checksum of {size >> 20} MiB is wrong"
    words.bitwise_not_().bitwise_not_()
    wrong = int((words != torch.arange(count, device=device) * factor).sum())
    return f"{wrong} of {count} words did not hold their pattern" if wrong else None


def counts(device: torch.device) -> str | None:
    """A histogram by atomic additions: every one of 97 bins holds a known count."""
    import torch

    per_bin, bins = 4096, 97
    places = torch.arange(per_bin * bins, device=device) % bins
    found = torch.zeros(bins, dtype=torch.int64, device=device)
    found.index_add_(0, places, torch.ones_like(places))
    wrong = int((found.cpu() != per_bin).sum())
    return f"{wrong} of {bins} bins of atomic additions are wrong" if wrong else None


PROBES: tuple[Probe, ...] = (product, pattern, counts)


def examine(device: torch.device, probes: Sequence[Probe] = PROBES) -> str | None:
    """What the first probe that failed saw, None when all passed. Each is run to its end on the device."""
    for probe in probes:
        try:
            trouble = probe(device)
        except RuntimeError as error:  # what the driver reports, out of memory too
            trouble = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        if trouble:
            return f"{probe.__name__}: {trouble}"
    return None


def main() -> int:
    """Sings for every line, until `go`. Returns 0 when all was right, or nobody asks any more; else 1."""
    if cores := sys.argv[2:]:
        os.sched_setaffinity(0, map(int, cores))
    import torch

    torch.set_num_threads(min(torch.get_num_threads(), 4))
    print(UP, flush=True)
    device, trouble = torch.device(sys.argv[1]), None
    for line in sys.stdin:  # which ends when whoever kept it has ended
        signal.alarm(round(TIME_LIMIT_S) + 5)  # should whoever asked be killed, a hung canary ends too
        trouble = examine(device)
        print(trouble or HEALTHY, flush=True)
        signal.alarm(0)
        if trouble or line.strip() == GO:
            break
        if device.type == "cuda":
            torch.cuda.empty_cache()  # others want it until we are asked again
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
