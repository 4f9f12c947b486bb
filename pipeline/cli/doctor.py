"""`kernelproof doctor`: what works on this machine, and how to get the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.cli.declaring import Option
from kernelproof.cli.options import JsonOption, StorageOptions, UnsafeOption
from kernelproof.report.plain import json_text, say, screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from kernelproof.types import Diagnosis


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

    place = storage.open_workspace()
    lifted = room.lift_quarantine(lambda text: say(text, err=True)) if lift_quarantine else []
    findings = lifted + room.examine(place, noise=noise, unsafe=unsafe)
    if as_json:
        print(json_text(findings))
    else:
        _print_findings(findings, screen())
    if any(finding.essential and not finding.ok for finding in findings):
        raise typer.Exit(3)


def _print_findings(findings: Sequence[Diagnosis], console: Console) -> None:
    """One line a finding, and what to do where something is missing."""
    from rich.text import Text

    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark, style = ("ok     ", "green") if finding.ok else ("missing", "bold red")
        line = Text.assemble((mark, style), f"  {finding.name:<{width}}  {finding.seen}")
        console.print(line, soft_wrap=True)
        if finding.remedy:
            console.print(f"{'':<{width + 11}}{finding.remedy}", soft_wrap=True)
