"""A reproduction on screen: what was claimed, what was seen now, and what differs."""

from __future__ import annotations

from rich.console import Console

from kernelproof.types import Reproduction, Verification
from kernelproof.types import ReproductionFinding as Finding

STYLE = {Finding.SAME: "bold green", Finding.FASTER: "bold green", Finding.AMBIGUOUS: "bold yellow"}


def print_reproduction(result: Reproduction, console: Console) -> None:
    """The finding, both results, and the differences in environment."""
    console.print(
        f"attempt {result.attempt_id}: {result.finding.value.replace('_', ' ')}",
        style=STYLE.get(result.finding, "bold red"),
    )
    console.print(result.reason, soft_wrap=True)
    for alteration in result.alterations:
        console.print(f"  altered: {alteration}", soft_wrap=True)
    for label, verification in (("then", result.then), ("now", result.now)):
        if verification is not None:
            console.print(f"{label:<5} {_line(verification)}", soft_wrap=True)
    for field, (then, now) in result.differences.items():
        console.print(f"  {field}: {then} then, {now} now", soft_wrap=True)
    if result.now is not None and not result.differences:
        console.print("the environment is the same")
    if result.verification_id is not None:
        console.print(f"kept as verification {result.verification_id}: kernelproof show {result.attempt_id}")


def _line(verification: Verification) -> str:
    device = verification.environment.device_name if verification.environment else "no device"
    measured = verification.measurement
    if measured is None:
        return f"{verification.status} on {device}, {verification.created}"
    interval = measured.speedup_interval
    return (
        f"{verification.status}, {measured.pace}: {measured.speedup:.3f}x "
        f"[{interval.low:.3f}, {interval.high:.3f}], {measured.candidate_ms:.4g} ms against "
        f"{measured.baseline_ms:.4g} ms on {device}, {verification.created}"
    )
