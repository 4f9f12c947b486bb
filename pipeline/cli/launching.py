"""The options of `kernelproof workers` that start workers in a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kernelproof.bounds import CPUS, WORKERS
from kernelproof.cli.declaring import Option
from kernelproof.cli.options import refuse_several
from kernelproof.errors import UsageError
from kernelproof.report.plain import say
from kernelproof.wording import counted

if TYPE_CHECKING:
    from kernelproof.service.launchers.model import Launcher, WorkerCommand


@dataclass(frozen=True)
class LauncherOptions:
    """Where workers are started, and how many."""

    ray: Annotated[
        str | None,
        Option(
            "Start workers in a Ray cluster, a judge for each GPU; auto: this machine's cluster.",
            metavar="<auto|address>",
        ),
    ] = None
    slurm: Annotated[bool, Option("Submit workers as jobs of Slurm.")] = False
    status: Annotated[bool, Option("Say how the cluster's workers stand.")] = False
    stop: Annotated[bool, Option("End the cluster's workers.")] = False
    judges: Annotated[
        int | None, Option("Workers that judge [default: one for each GPU; Slurm: one].", WORKERS)
    ] = None
    builders: Annotated[
        int | None, Option("Workers that only build; 0: judges build, too [default: 0].", WORKERS)
    ] = None
    cpus: Annotated[
        int | None, Option("CPUs to ask the cluster for, for each worker [default: 1].", CPUS)
    ] = None

    @property
    def asked(self) -> bool:
        """Whether any of these options is given. Raises UsageError for those that do not fit together."""
        clusters = [f"--{name}" for name in ("ray", "slurm") if getattr(self, name)]
        refuse_several(clusters)
        refuse_several([f"--{name}" for name in ("status", "stop") if getattr(self, name)])
        for name in ("status", "stop", "judges", "builders", "cpus"):
            value = getattr(self, name)
            if not clusters and value is not None and value is not False:
                raise UsageError(f"--{name} belongs to --ray or --slurm; give one of them")
        return bool(clusters)

    def launch(self, command: WorkerCommand) -> None:
        """Starts workers, says how they stand, or ends them. Raises UsageError, MachineError."""
        launcher = self._launcher(command)
        standing = launcher.status()
        if self.stop:
            launcher.stop()
            say(f"ended {counted(len(standing), 'worker')}: {', '.join(standing)}".removesuffix(": "))
            return
        if not self.status:
            judges = launcher.judges if self.judges is None else self.judges
            for name, role in command.roles(judges, self.builders or 0).items():
                if name not in standing:
                    launcher.start(name, role)
            standing = launcher.status()
        for name, words in standing.items():
            say(f"{name:<12} {words}")
        if not standing:
            say("no workers run here")

    def _launcher(self, command: WorkerCommand) -> Launcher:
        if isinstance(command.place.database, Path):
            raise UsageError(
                f"workers of other machines do not reach {command.place.database}: give a database on a "
                "server, --db postgresql+psycopg://USER@HOST/NAME"
            )
        if self.slurm:
            from kernelproof.service.launchers.slurm import Slurm

            return Slurm(command)
        from kernelproof.service.launchers.ray import Ray

        return Ray(command, self.ray or "auto")
