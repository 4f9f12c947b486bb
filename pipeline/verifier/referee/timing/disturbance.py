"""Was a timed block undisturbed? The watch looks right before and right after it, and at the GPU after each
round of blocks, outside the timed window.

Three things make a block worthless. The GPU was slowed down by heat, by its power supply, or to a lower clock
than at the block's beginning. Another process began to compute on it. Or other programs kept the measured
processes waiting for a core. Two things belong to the work and are only noted: heavy kernels reach the power
cap, and a candidate with more threads than cores waits for itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from kernelproof.verifier.sandbox.procfs import Waits, cores_of, read_waits, waits_readable

if TYPE_CHECKING:
    import torch

SLOWDOWNS = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Reasons for lower clocks (nvml.h, nvmlClocksEventReasons) that no kernel can be blamed for."""
IDLE, POWER_CAP = 0x01, 0x04
CLOCK_DROP = 0.10
"""A clock lower by more than this share is another measurement."""
WAIT_SHARE, WAIT_MS = 0.05, 0.2
"""Waiting for a core beyond this share of the block plus this long is a disturbance."""
WORKER_SHARE = 0.05
"""A thread that ran for less than this share of what the busiest ran did no work in the block."""

PROMPT_S = 0.005
"""A driver that has not answered by then waits for somebody's lock."""
REPEATS, REPEATED_OF = 2, 3
"""Disturbed rounds are repeated: two, and one for every three that are kept. A machine that is disturbed more
often is so all the time, and repetitions would not help."""


@dataclass(frozen=True)
class GpuReading:
    """What NVML says of a GPU now; None where it does not say."""

    sm_mhz: int | None = None
    reasons: int | None = None
    """Why the clocks are not higher: a sum of nvml.h's bits."""
    users: frozenset[int] | None = None
    """Processes that compute on it. In a container these may be numbers of the host, or nothing."""


ReadGpu = Callable[[], GpuReading]
Answer = TypeVar("Answer")


@dataclass
class Watch:
    """Watches the timed blocks of one run: `before`, the block, `after`, which cost some 8 us a thread; and
    after each round of blocks `gpu_trouble`, with `ask_gpu` ahead of it where there is other work meanwhile.

    The driver answers in 0.3 ms, in 2.5 where another GPU of the host is used as well, and now and then in
    half a second: its questions share a lock with whatever makes contexts and memory. Asked around every
    block it took a seventh of the time. So it answers while outputs are compared, and an answer that comes
    late counts for the round in which it comes.

    `pids` gives the measured processes now, helpers included; those that vanish are left out, and those that
    are held still change nothing. `read_gpu`: where a GPU's state comes from, by default NVML.
    """

    device: torch.device
    pids: Callable[[], Iterable[int]]
    read_gpu: ReadGpu | None = None
    power_capped: int = field(default=0, init=False)
    """Rounds after which the power cap limited the clocks: another minute, with more heat or less, is another
    measurement then."""
    waited_ms: float = field(default=0.0, init=False)
    """How long, at most, the last block was kept waiting for a core: by other programs, or by threads of its
    own, whose waits at the same time count once."""
    joined: bool = field(default=False, init=False)
    """Whether the last trouble was a process that came to use the GPU: it may be the candidate's own."""
    _notes: dict[str, None] = field(default_factory=dict, init=False)
    _known: frozenset[int] | None = field(default=None, init=False)
    _best_mhz: int = field(default=0, init=False)
    _gpu: GpuReading | None = field(default=None, init=False)
    _pending_reading: Future[GpuReading] | None = field(default=None, init=False)
    _owed: bool = field(default=False, init=False)
    """Whether that was pending already when the blocks of this round were over."""
    _waits: Waits = field(default_factory=dict, init=False)
    _began: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.read_gpu is None and self.device.type == "cuda":
            self.read_gpu = nvml_reader(self.device)
        if not waits_readable():
            self._note("the kernel does not tell how long a process waits for a core: other load is not seen")

    @property
    def notes(self) -> tuple[str, ...]:
        """What was seen, or could not be, without making a block worthless; each once."""
        return tuple(self._notes)

    def before(self) -> None:
        """Takes the readings that `after` compares with. Processes on the GPU at the first call are known."""
        if self.read_gpu is not None and self._gpu is None:
            self._gpu = self.read_gpu()
            self._known = self._gpu.users
        self._waits = read_waits(self.pids())
        self._began = time.monotonic_ns()

    def after(self) -> str | None:
        """Why the block since `before` should be thrown away, as far as cores tell; None when nothing took
        them."""
        return self._waiting(time.monotonic_ns() - self._began)

    def ask_gpu(self) -> None:
        """Asks the driver ahead, once the blocks of a round are over, unless it still owes an answer."""
        self._owed = self._pending_reading is not None
        if self.read_gpu is not None and not self._owed:
            self._pending_reading = in_thread(self.read_gpu)

    def gpu_trouble(self, *, patient: bool = True) -> str | None:
        """The same for the GPU: trouble in any block since the last call, as far as the driver shows it. An
        answer that was asked for ahead is only waited for where we are `patient`; the next call has it."""
        if self.read_gpu is None:
            return None
        reading = self._pending_reading or in_thread(self.read_gpu)
        try:
            trouble = self._compared(reading.result(None if patient else PROMPT_S))
        except TimeoutError:
            self._pending_reading = reading
            return None
        self._pending_reading, owed, self._owed = None, self._owed, False
        if owed and patient and trouble is None:  # it was asked before the blocks of this round
            trouble = self._compared(self.read_gpu())
        return trouble

    def _compared(self, now: GpuReading) -> str | None:
        before, self._gpu = self._gpu or GpuReading(), now
        return self._trouble(before, now)

    def _trouble(self, before: GpuReading, now: GpuReading) -> str | None:
        if now.sm_mhz is None or now.reasons is None:
            self._note("the driver does not tell clocks and what limits them: slowdowns are not seen")
        if (now.reasons or 0) & POWER_CAP:
            self.power_capped += 1
            self._note("the power cap limits the clocks, as it does for heavy kernels")
        slower, joined = slowed_down(before, now, self._best_mhz), newcomers(self._known, now.users)
        self.joined = slower is None and joined is not None
        trouble = slower or joined
        if trouble is None:
            self._best_mhz = max(self._best_mhz, now.sm_mhz or 0)
        return trouble

    def _waiting(self, wall_ns: int) -> str | None:
        after = read_waits(self.pids())
        ran, waited = spent(self._waits, after)
        working = workers(self._waits, after)
        # The first process of a sandbox may use all cores, and sleeps: its cores are not the contestant's.
        taken = lost_to_others(ran, waited, wall_ns, cores_of(thread for _, thread in working))
        self.waited_ms = max([taken, *(waited for _, waited in working.values())]) / 1e6
        # On a CPU the time counts in which a core was wanted: what lies around the block dilutes nothing.
        block = wall_ns if self.read_gpu is not None else min(wall_ns, ran + waited)
        if taken <= WAIT_SHARE * block + WAIT_MS * 1e6:
            return None
        return f"other programs kept it waiting for a core, {taken / 1e6:.1f} ms in {block / 1e6:.1f} ms"

    def _note(self, text: str) -> None:
        self._notes.setdefault(text)


class Repeats:
    """Decides which disturbed rounds of one pair of processes may be repeated.

    A candidate can make its threads wait for each other, and so have bad rounds thrown away. In simulation it
    reached a claim of 1.05 where 1.00 is true. On a machine with other load the baseline waits about as
    often. So a round in which the candidate's block alone waited for a core is repeated once, and once more
    for each round in which the baseline's block waited. A process that comes to use the GPU counts as the
    candidate's: it could start one whenever it wants.
    """

    def __init__(self) -> None:
        self._excuses = 1

    def allowed(self, waited: Collection[bool], thrown: int, kept: int) -> bool:
        """Whether this round may be repeated. Call it once for each round, undisturbed ones too.

        `waited`: whose blocks of the round waited for a core: the baseline's (True), the candidate's (False).
        `thrown`, `kept`: rounds so far.
        """
        self._excuses += True in waited
        if thrown >= REPEATS + kept // REPEATED_OF:
            return False
        if set(waited) == {False}:
            self._excuses -= 1
            if self._excuses < 0:
                self._excuses = 0
                return False
        return True


def in_thread(work: Callable[[], Answer]) -> Future[Answer]:
    """Its result, once a thread of its own has it."""
    answer: Future[Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, name="driver", daemon=True).start()
    return answer


def slowed_down(before: GpuReading, after: GpuReading, best_mhz: int) -> str | None:
    """Whether a GPU ran slower than its work explains. `best_mhz`: the highest clock after any good block.

    An idle GPU lowers its clock, and so does the power cap under a heavy kernel: neither counts.
    """
    reasons = (before.reasons or 0) | (after.reasons or 0)
    found = [name for bit, name in SLOWDOWNS.items() if reasons & bit]
    if found:
        return f"the GPU was slowed down: {', '.join(found)}"
    usual = max(before.sm_mhz or 0, best_mhz)
    explained = (after.reasons or 0) & (IDLE | POWER_CAP)
    if after.sm_mhz is not None and not explained and after.sm_mhz < (1 - CLOCK_DROP) * usual:
        return f"the GPU's clock fell from {usual} to {after.sm_mhz} MHz"
    return None


def newcomers(known: frozenset[int] | None, users: frozenset[int] | None) -> str | None:
    """Whether processes compute on the GPU that did not at the start."""
    if known is None or users is None or not users - known:
        return None
    names = ", ".join(map(str, sorted(users - known)))
    return f"another process came to use the GPU: {names}"


def spent(before: Waits, after: Waits) -> tuple[int, int]:
    """Nanoseconds that the threads ran, and that those which worked waited for a core."""
    ran = sum(ran for ran, _ in _steps(before, after).values())
    return ran, sum(waited for _, waited in workers(before, after).values())


def workers(before: Waits, after: Waits) -> Waits:
    """What the threads which worked ran and waited between two readings.

    A thread that hardly ran is no worker. When a process continues, all its threads wake up, and most sleep
    again. Their short wait delays nothing.
    """
    steps = _steps(before, after)
    busiest = max((ran for ran, _ in steps.values()), default=0)
    return {thread: step for thread, step in steps.items() if step[0] >= WORKER_SHARE * busiest}


def _steps(before: Waits, after: Waits) -> Waits:
    steps = {}
    for thread, (ran_now, waited_now) in after.items():
        ran_then, waited_then = before.get(thread, (0, 0))
        steps[thread] = max(0, ran_now - ran_then), max(0, waited_now - waited_then)
    return steps


def lost_to_others(ran: int, waited: int, wall_ns: int, cores: int) -> int:
    """The most nanoseconds of waiting for a core that other programs can have caused.

    The cores give `cores * wall_ns`. The threads used some of that, and other programs can have used only the
    rest. Beyond the rest the threads waited for each other. The rest includes idle time, so a candidate that
    starts more threads than cores and then rests looks like a disturbed one.
    """
    return min(waited, max(0, cores * wall_ns - ran))


def nvml_reader(device: torch.device) -> ReadGpu:
    """Reads a GPU's state, with NVML's handle looked up once."""
    import pynvml

    from kernelproof.verifier.referee.environment import nvml_handle, quiet

    handle = nvml_handle(device)

    def read() -> GpuReading:
        users = quiet(pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
        return GpuReading(
            sm_mhz=quiet(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
            reasons=quiet(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
            users=None if users is None else frozenset(process.pid for process in users),
        )

    return read
