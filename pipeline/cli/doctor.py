"""`kernelproof doctor`: what works on this machine, and how to get the rest."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from kernelproof.cli.declaring import Option
from kernelproof.cli.options import JsonOption, StorageOptions, UnsafeOption
from kernelproof.report.plain import say, screen


def doctor(
    noise: Annotated[bool, Option("Measure the A/A noise: a reference against itself (about 20 s).")] = True,
    lift_quarantine: Annotated[
        bool, Option("Test quarantined GPUs again; those that pass are used.")
    ] = False,
    *,
    storage: StorageOptions,
    as_json: JsonOption = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Say what works here: GPU, compilers, sandbox, database, model endpoint, noise of the clock.

    Exit code 3 when no backend works here.
    """
    from kernelproof import doctor as room
    from kernelproof.report.machine import print_findings

    place = storage.open_workspace()
    lifted = room.lift_quarantine(lambda text: say(text, err=True)) if lift_quarantine else []
    findings = lifted + room.examine(place, noise=noise, unsafe=unsafe)
    if as_json:
        print(json.dumps([finding.model_dump(mode="json") for finding in findings], indent=1))
    else:
        print_findings(findings, screen())
    if any(finding.essential and not finding.ok for finding in findings):
        raise typer.Exit(3)
