"""The options of `kernelproof workers` that start workers elsewhere than in the command's own process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.bounds import CPUS, JOB_MINUTES, WORKERS
from kernelproof.cli.options import nonempty_text, number, refuse_several

if TYPE_CHECKING:
    from kernelproof.service.launchers.model import Wanted
    from kernelproof.service.launchers.operating import Action, Kind
    from kernelproof.workspace import Workspace


@dataclass(frozen=True)
class LauncherOptions:
    """Where workers are started, and how many."""

    local: Annotated[
        bool,
        typer.Option("--local", help="Keep a builder, and a judge for each GPU, running on this machine."),
    ] = False
    ray: Annotated[
        str | None,
        typer.Option(
            parser=nonempty_text,
            metavar="<auto|address>",
            help="Start workers in a Ray cluster, a judge for each GPU; auto: this machine's cluster.",
        ),
    ] = None
    slurm: Annotated[bool, typer.Option("--slurm", help="Submit workers as jobs of Slurm.")] = False
    status: Annotated[
        bool, typer.Option("--status", help="With one of these three: say how their workers stand.")
    ] = False
    stop: Annotated[bool, typer.Option("--stop", help="With one of these three: end their workers.")] = False
    judges: Annotated[
        int | None, number(WORKERS, "Workers that judge [default: one for each GPU; Slurm: one].")
    ] = None
    builders: Annotated[
        int | None,
        number(
            WORKERS,
            "Workers that only build; 0: judges build, too [default: 1; Ray: one for each node].",
        ),
    ] = None
    cpus: Annotated[
        int | None, number(CPUS, "CPUs to ask Ray or Slurm for, for each worker [default: 1].")
    ] = None
    partition: Annotated[
        str | None, typer.Option(parser=nonempty_text, help="Slurm's partition [default: Slurm's own].")
    ] = None
    minutes: Annotated[
        int | None,
        number(JOB_MINUTES, "Longest time of a job of Slurm; then it is queued again [default: 240]."),
    ] = None

    @property
    def asked(self) -> bool:
        """Whether any of these options is given. Raises UsageError for those that do not fit together."""
        from kernelproof.errors import UsageError

        places = [f"--{name}" for name in ("local", "ray", "slurm") if getattr(self, name)]
        refuse_several(places)
        refuse_several([f"--{name}" for name in ("status", "stop") if getattr(self, name)])
        given = [name for name in ("status", "stop") if getattr(self, name)]
        numbers = ("judges", "builders", "cpus", "partition", "minutes")
        given += [name for name in numbers if getattr(self, name) is not None]
        if given and not places:
            raise UsageError(f"--{given[0]} belongs to --local, --ray or --slurm; give one of them")
        unfit = {"cpus": self.local, "partition": not self.slurm, "minutes": not self.slurm}
        for name in given:
            if unfit.get(name):
                raise UsageError(f"--{name} is not for {places[0]}; leave it out")
        return bool(places)

    def launch(self, place: Workspace, *, places: int, unsafe: bool, artefacts: str | None = None) -> None:
        """Does what is asked. Raises UsageError, MachineError."""
        from kernelproof.service.launchers.operating import launcher, operate

        wanted = self._wanted(place, places, unsafe, artefacts)
        kind: Kind = "local" if self.local else "slurm" if self.slurm else "ray"
        action: Action = "status" if self.status else "stop" if self.stop else "start"
        operate(launcher(kind, wanted, self.ray or "auto"), action)

    def _wanted(self, place: Workspace, places: int, unsafe: bool, artefacts: str | None) -> Wanted:
        from kernelproof.service.artefact_places import artefacts_place
        from kernelproof.service.launchers.model import Wanted

        return Wanted(
            place=place,
            builders=self.builders,
            judges=self.judges,
            places=places,
            artefacts=artefacts_place(artefacts) if artefacts is not None else None,
            unsafe=unsafe,
            cpus=self.cpus or 1,
            partition=self.partition,
            minutes=self.minutes,
        )
