"""What `doctor` found, on screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from kernelproof.types import Diagnosis


def print_findings(findings: Sequence[Diagnosis], console: Console) -> None:
    """One line a finding, and what to do where something is missing."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark, style = ("ok     ", "green") if finding.ok else ("missing", "bold red")
        line = Text.assemble((mark, style), f"  {finding.name:<{width}}  {finding.seen}")
        console.print(line, soft_wrap=True)
        if finding.remedy:
            console.print(f"{'':<{width + 11}}{finding.remedy}", soft_wrap=True)
