"""A launcher's commands for a person, and their messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kernelproof.errors import UsageError
from kernelproof.report.plain import say
from kernelproof.service.launchers.model import Launcher, Standing, Wanted
from kernelproof.wording import counted

Kind = Literal["local", "ray", "slurm"]
Action = Literal["start", "status", "stop"]


def launcher(kind: Kind, wanted: Wanted, address: str = "auto") -> Launcher:
    """A launcher. `address`: of the Ray cluster.

    Raises UsageError where other machines could not reach the database, MachineError where something is
    missing.
    """
    if kind == "local":
        from kernelproof.service.launchers.local import Local

        return Local(wanted)
    if isinstance(wanted.place.database, Path):
        raise UsageError(
            f"workers of other machines do not reach {wanted.place.database}: give a database on a server, "
            "--db postgresql+psycopg://USER@HOST/NAME"
        )
    if kind == "ray":
        from kernelproof.service.launchers.ray import Ray

        return Ray(wanted, address)
    from kernelproof.service.launchers.slurm import Slurm

    return Slurm(wanted)


def operate(launched: Launcher, action: Action) -> None:
    """Starts workers, tells how they stand, or ends them; says it. Raises UsageError, MachineError."""
    if action == "start":
        _tell(launched.start())
        return
    standing = launched.status() if action == "status" else launched.stop()
    if not standing:
        say("no workers run here")
    elif action == "status":
        _tell(standing)
    else:
        say(f"ended {counted(len(standing), 'worker')}: {', '.join(each.name for each in standing)}")


def _tell(standing: Sequence[Standing]) -> None:
    for each in standing:
        say(str(each))
