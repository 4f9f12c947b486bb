"""What every way of confining a job offers to its watcher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kernelproof.verifier.sandbox import procfs
from kernelproof.verifier.sandbox.freezer import Freezer
from kernelproof.verifier.sandbox.model import Job


@dataclass(frozen=True)
class Ended:
    """How a tree of processes ended."""

    exit_code: int | None
    signal: int | None
    cpu_s: float
    left: tuple[int, ...] = ()
    """Processes that could not be killed, or not be proven gone."""


class Tree(Protocol):
    """The processes of one job, confined and let go."""

    root: int
    """The process that every process of the tree descends from."""
    stdout: int
    stderr: int
    """Descriptors to read from, non-blocking."""
    exit_fd: int
    """Readable once the job's own first process has ended."""
    freezer: Freezer | None
    """The control group of all below `root`, if the job has one; `close` removes it."""

    def end(self, grace_s: float) -> Ended:
        """Kills what still runs, and proves that nothing is left or says what is. To be called once."""

    def close(self) -> None:
        """Closes the descriptors."""


def freezer_for(job: Job, root: int) -> Freezer | None:
    """A control group with all that is below `root`. Made before the job is let go, it holds what that starts
    as well."""
    if not job.pausable:
        return None
    return Freezer.of(pid for pid in procfs.descendants(root) if pid != root)
