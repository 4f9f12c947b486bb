"""The common part of launchers: the wanted workers, their state, and the three operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kernelproof.choices import Role
from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_text
from kernelproof.workspace import Workspace


@dataclass(frozen=True)
class Daemon:
    """One worker that is to run."""

    name: str
    """`builder-0`, `judge-1`: the same name is never started twice."""
    role: Role


@dataclass(frozen=True)
class Wanted:
    """The workers that a user wants."""

    place: Workspace
    builders: int | None = None
    """None: as many as the launcher finds fit. 0: judges build as well."""
    judges: int | None = None
    """None: one for each GPU that the launcher sees."""
    places: int = 0
    """Evaluations that a worker has at once; 0: as many as its cores serve."""
    artefacts: str | None = None
    """Where builders publish: a directory, or an address that fsspec knows."""
    unsafe: bool = False
    cpus: int = 1
    """CPUs to ask the cluster for, for each worker."""
    partition: str | None = None
    minutes: int | None = None
    """Longest time of a job."""

    @property
    def key(self) -> str:
        """Eight characters that differ from database to database."""
        return sha256_text(str(self.place.database))[:8]

    def daemons(self, judges: int, builders: int) -> list[Daemon]:
        """The workers that are to run. `judges`, `builders`: how many, where the user said nothing.

        Raises UsageError where nothing would run, and where builders and judges would not meet.
        """
        judging = judges if self.judges is None else self.judges
        building = builders if self.builders is None else self.builders
        if not judging + building:
            raise UsageError("--judges 0 --builders 0 starts nothing; give one of them a number above 0")
        if building and self.artefacts is None:
            raise UsageError(
                "builders need --artefacts: a directory that builders and judges share, or an address such "
                "as s3://BUCKET/FOLDER; without builders, --builders 0, judges build as well"
            )
        role = Role.JUDGE if building else Role.ALL
        return [
            *(Daemon(f"builder-{number}", Role.BUILD) for number in range(building)),
            *(Daemon(f"judge-{number}", role) for number in range(judging)),
        ]


@dataclass(frozen=True)
class Standing:
    """How one worker stands."""

    name: str
    state: str
    """`running`, `waiting` (for a place or a new start), `ended`."""
    where: str = ""
    """Node, job, process."""
    device: str = ""
    """The UUID of its GPU."""
    note: str = ""
    """Its last message, where it failed."""

    def __str__(self) -> str:
        words = (f"{self.name:<12} {self.state:<8}", self.where, self.device, self.note)
        return "  ".join(word for word in words if word).rstrip()


class Launcher(Protocol):
    """Starts workers, says how they stand, ends them. Every method raises UsageError and MachineError."""

    def start(self) -> Sequence[Standing]:
        """Starts what does not run yet; how everything stands then."""

    def status(self) -> Sequence[Standing]:
        """How the workers of this database stand, whoever started them."""

    def stop(self) -> Sequence[Standing]:
        """Ends them, and returns their state before. Their evaluations go back into the queue."""
