"""This machine on screen: what `doctor` saw of it, and its cache of builds."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from kernelproof.report.layout import percent, print_facts, print_table, size
from kernelproof.types import CacheSurvey, Diagnosis, Removal
from kernelproof.wording import counted


def print_findings(findings: Sequence[Diagnosis], console: Console) -> None:
    """One line a finding, and what to do where something is missing."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark, style = ("ok     ", "green") if finding.ok else ("missing", "bold red")
        line = Text.assemble((mark, style), f"  {finding.name:<{width}}  {finding.seen}")
        console.print(line, soft_wrap=True)
        if finding.remedy:
            console.print(f"{'':<{width + 11}}{finding.remedy}", soft_wrap=True)


def print_survey(survey: CacheSurvey, console: Console) -> None:
    """Facts about the builds, and the other folders with their sizes."""
    filled = percent(survey.bytes / survey.bound_bytes)
    states = {"ok": survey.ok, "error": survey.error, "damaged": survey.damaged}
    print_facts(
        console,
        {
            "cache": survey.path,
            "builds": f"{survey.builds}, {size(survey.bytes)}: {filled} of {size(survey.bound_bytes)}",
            "states": ", ".join(f"{count} {name}" for name, count in states.items() if count),
            "last used": f"{survey.oldest_use} to {survey.newest_use}" if survey.oldest_use else "",
            "prebuilt": f"{counted(survey.prebuilt, 'source')} known to be built",
            "toolchains": "\n".join(survey.toolchains),
        },
    )
    print_table(console, ("folder", "size"), [(name, size(count)) for name, count in survey.folders.items()])


def print_removal(removal: Removal, console: Console) -> None:
    """Two lines: what was removed, and what is left."""
    entries = counted(removal.index_entries, "entry", "entries")
    index = f", {entries} of the build index" if removal.index_entries else ""
    console.print(f"removed {counted(removal.builds, 'build')}, {size(removal.bytes)}{index}", soft_wrap=True)
    left = f"left    {counted(removal.left_builds, 'build')}, {size(removal.left_bytes)}"
    console.print(left, soft_wrap=True)
