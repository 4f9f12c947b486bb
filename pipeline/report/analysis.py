"""A program's bottleneck, and the registers and memory that its kernels take of an SM, on screen."""

from __future__ import annotations

from rich.console import Console

from kernelproof.analysis.analyse import Analysis, KernelFacts
from kernelproof.analysis.bottleneck import Bottleneck
from kernelproof.report.layout import figure, percent, print_facts, print_table

ROWS = 20
"""Kernels that the table shows."""
NAME = 60
"""Characters of a kernel's name in it."""


def print_analysis(analysis: Analysis, console: Console) -> None:
    """A table of the kernels of which something is known, and the bottleneck."""
    rows = [_row(facts) for facts in analysis.kernels if facts.registers is not None]
    titles = ("kernel", "threads", "registers", "spilled", "shared", "occupancy", "limited by")
    print_table(console, titles, rows[:ROWS])
    if analysis.bottleneck is not None:
        print_facts(console, {"bottleneck": _said(analysis.bottleneck)})


def _row(facts: KernelFacts) -> tuple[str, ...]:
    occupancy = facts.occupancy
    return (
        facts.launch.name[:NAME],
        _number(facts.launch.threads),
        _number(facts.registers),
        _bytes(facts.spill_bytes),
        _bytes(facts.shared_bytes),
        percent(occupancy.share) if occupancy else "",
        occupancy.limited_by if occupancy else "",
    )


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _bytes(value: int | None) -> str:
    return "" if value is None else f"{value} B"


def _said(found: Bottleneck) -> str:
    """`memory (81 % of the time for the bytes, 2710 GB/s; kernels run for 97 % of it)`."""
    parts = []
    if found.memory_share is not None and found.achieved_bytes_per_s is not None:
        speed = figure(found.achieved_bytes_per_s / 1e9)
        parts.append(f"the bytes need {percent(found.memory_share)} of the time, {speed} GB/s")
    if found.compute_share is not None:
        parts.append(f"the arithmetic {percent(found.compute_share)}")
    if found.device_share is not None:
        parts.append(f"kernels run for {percent(found.device_share)} of it")
    return f"{found.limit} ({'; '.join(parts)})" if parts else found.limit
