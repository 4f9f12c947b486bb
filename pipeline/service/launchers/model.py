"""Workers as launchers start them: their command, their names, and the protocol of a launcher."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol

from kernelproof.choices import Role
from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_text
from kernelproof.service.artefacts import is_address
from kernelproof.workspace import DATABASE_VARIABLE, WORKSPACE_VARIABLE, Workspace, address

STORE_VARIABLES = ("AWS_", "FSSPEC_")
"""Beginnings of variables that say where an artefact store is, and hold the credentials for it."""


@dataclass(frozen=True)
class WorkerCommand:
    """How the workers of a database are started."""

    place: Workspace
    places: int = 0
    """Evaluations that a worker has at once; 0: as many as its cores serve."""
    artefacts: str | None = None
    """Where builders publish: a directory, or an address that fsspec knows."""
    unsafe: bool = False
    cpus: int = 1
    """CPUs to ask a cluster for, for each worker."""

    def options(self, role: Role) -> list[str]:
        """Of `kernelproof service workers`. Everybody on a machine sees them: no secret is among them."""
        words = [] if role is Role.ALL else ["--role", role]
        words += ["--places", str(self.places)] if self.places else []
        words += ["--artefacts", self.artefacts] if self.artefacts else []
        return [*words, *(["--unsafe"] if self.unsafe else [])]

    @property
    def environment(self) -> dict[str, str]:
        """Where the database is, with its password; how S3 is reached, where artefacts lie at an address."""
        away = self.artefacts is not None and is_address(self.artefacts)
        passed_on = {
            name: os.environ[name] for name in os.environ if away and name.startswith(STORE_VARIABLES)
        }
        place = {DATABASE_VARIABLE: address(self.place.database), WORKSPACE_VARIABLE: str(self.place.root)}
        return {**place, **passed_on}

    @property
    def cluster_name(self) -> str:
        """The name by which a cluster knows the workers of this database."""
        return f"kernelproof-{sha256_text(str(self.place.database))[:8]}"

    def roles(self, judges: int, builders: int) -> dict[str, Role]:
        """The names and roles of so many workers: `builder-0`, `judge-1`.

        Raises UsageError where there are none, and where builders and judges would not meet.
        """
        if not judges + builders:
            raise UsageError("--judges 0 --builders 0 starts nothing; give one of them a number above 0")
        if builders and self.artefacts is None:
            raise UsageError(
                "builders need --artefacts: a directory that builders and judges share, or an address such "
                "as s3://BUCKET/FOLDER; without builders, --builders 0, judges build as well"
            )
        judging = Role.JUDGE if builders else Role.ALL
        names = {f"builder-{number}": Role.BUILD for number in range(builders)}
        return names | {f"judge-{number}": judging for number in range(judges)}


class Launcher(Protocol):
    """The workers of one database in a cluster, whoever started them. Methods raise MachineError."""

    judges: int
    """How many judges suit the cluster."""

    def start(self, name: str, role: Role) -> None:
        """Starts one worker, which is started again whenever it fails or its machine is lost."""

    def status(self) -> dict[str, str]:
        """How each worker stands: its name, and `running` or why it waits."""

    def stop(self) -> None:
        """Ends all workers. Their evaluations go back into the queue."""
