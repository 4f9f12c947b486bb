"""What the sandbox is asked to do, what holds while it does it, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Literal

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class Tier(StrEnum):
    """How strongly a job is confined, strongest first."""

    A = "A"
    """bubblewrap started by root; the job runs under an unprivileged user id of its own."""
    B = "B"
    """bubblewrap in a user namespace, started by an ordinary user."""
    C1 = "C1"
    """Landlock and seccomp; root starts the job under a user id of its own. No namespaces."""
    C2 = "C2"
    """Landlock and seccomp under the caller's own user id (never as root)."""
    D = "D"
    """seccomp and resource limits only: nothing hides the host's files. Needs `unsafe`."""


@dataclass(frozen=True)
class Confinement:
    """What is in force: the tier, the state of each layer, and why stronger tiers were refused."""

    tier: Tier
    layers: Mapping[str, str]
    """Layer name → what holds, in words; `none` where nothing does."""
    refusals: tuple[str, ...] = ()
    """One line for each stronger tier that could not be had, with the tool's own words."""


@dataclass(frozen=True)
class Limits:
    """What one job may use. A limit passed ends the job, with the state named for it."""

    wall_s: float | None = 60.0
    """Seconds from start to end; None: the caller keeps the time."""
    cpu_s: float = 600.0
    """Processor seconds of all processes of the job together."""
    memory_bytes: int = 16 * GIB
    """Resident memory of all processes together, with memory files (also those the caller passed in)."""
    processes: int = 256
    """Processes and threads at one time."""
    file_bytes: int = 4 * GIB
    """Size of one file, memory files included."""
    open_files: int = 4096
    """Descriptors of one process."""
    output_bytes: int = 256 * KIB
    """Kept of each of stdout and stderr; a job that writes 64 times as much is ended."""
    scratch_bytes: int = 8 * GIB
    """Disk space in the scratch directory, and the size of each of /tmp and /dev/shm inside, which is at most
    half of `memory_bytes`."""
    address_space_bytes: int | None = None
    """Address space of one process. Never set it for a job that uses CUDA, which reserves a great deal."""


@dataclass(frozen=True)
class Job:
    """A command to run confined. Every path in it is absolute and the same inside as outside."""

    argv: tuple[str, ...]
    scratch: Path
    """An existing directory of this job alone: its working directory, HOME and TMPDIR, writable."""
    read_only: tuple[Path, ...] = ()
    """What else of the host the job sees."""
    gpus: tuple[int, ...] = ()
    """Minor numbers of the NVIDIA devices that the job may use."""
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Added to the clean environment."""
    pass_fds: tuple[int, ...] = ()
    """Descriptors inherited under the same numbers."""
    limits: Limits = Limits()
    cores: tuple[int, ...] = ()
    """Processors that it runs on from its start; none named: as `spawner.spawn` has it."""
    pausable: bool = False
    """Whether it will be paused: it gets a control group of its own then, where there is one to be had."""
    nice: int = 0
    """By how much it gives way to others on those processors, 0 to 19 (nice(2))."""


ALLOWED_MS, ALLOWED_MS_A_HOLD, ALLOWED_MS_A_THREAD = 0.5, 0.01, 0.001
"""Processor time that all holds of one job may show together: so much, so much more for each hold, and for
each of its threads in each hold.

A job held by SIGSTOP shows none at all: 0 ns in 200 holds of 30 threads under a timer of 2 kHz. A job held by
a control group shows the time to receive a signal and to be held again: 1 to 3 us a hold, 0.2 to 0.5 ms in
all, on a machine that others loaded; of some 100 sleeping threads beside a GPU's 45 us a hold.
"""


@dataclass(frozen=True)
class Held:
    """Whether a job was still whenever it was paused."""

    holds: int
    """How often it was looked."""
    ran_ms: float
    """Processor milliseconds that were booked to it while it was paused, after two readings had agreed."""
    woken: int
    """How often a process was found awake that had been stopped."""
    threads: int = 0
    """The most threads that it had in one of them: each takes its signal by itself."""
    settling_ms: float = 0.0
    """Processor milliseconds that were booked to it before: by threads that still woke up from the last
    resume. The hold had no result yet, so nothing could be gained."""
    watched: int = 0
    """Holds that were made longer, because `ran_ms` was more than `allowed_ms`."""
    certain_ms: float = 0.0
    """The part of `ran_ms` that it certainly worked for: threads at rest for a tick cannot be booked late,
    and what is booked late does not grow for as long as one watches."""

    @property
    def allowed_ms(self) -> float:
        """The most that honest jobs show in so many holds, in milliseconds."""
        return ALLOWED_MS + (ALLOWED_MS_A_HOLD + ALLOWED_MS_A_THREAD * self.threads) * self.holds


State = Literal["ok", "error", "crash", "timeout", "memory", "cpu", "output", "killed", "lost", "unkillable"]
"""`ok`: exit 0. `error`: another exit code. `crash`: ended by a signal. `timeout`, `memory`, `cpu`: that
limit was passed. `output`: too much written to stdout, stderr or the scratch directory. `killed`: the
caller ended it. `lost`: somebody outside sent SIGKILL, as nothing inside can. `unkillable`: processes
were left after everything was tried."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended. stdout and stderr are decoded text without escape sequences or control characters."""

    state: State
    exit_code: int | None
    """None when a signal ended it."""
    signal: str | None
    """The signal's name (`SIGSEGV`) when one ended it."""
    stdout: str
    stderr: str
    wall_s: float
    cpu_s: float
    """Processor seconds of the tree, at least."""
    peak_rss_bytes: int
    """Highest sum over the tree that the watchdog saw (every 200 ms)."""
    kill_ms: float
    """From the decision to end the job to the proof that nothing of it is left; 0 when it ended itself."""
    reason: str = ""
    """Why it was ended, in words."""
    shortage: bool = False
    """Whether the machine ran out of memory while it ran."""
    used_it_up: bool = False
    """Whether the machine did, and the job held more than half of all the memory there is."""
