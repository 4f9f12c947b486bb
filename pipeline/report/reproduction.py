"""A reproduction on screen: what was claimed, what was seen now, and what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from kernelproof.report.findings import against, finding_of, times
from kernelproof.report.layout import print_table
from kernelproof.report.plain import clean
from kernelproof.types import Reproduction, Verification
from kernelproof.types import ReproductionFinding as Finding
from kernelproof.types.reproduction import Bundled
from kernelproof.wording import counted

STYLE = {Finding.SAME: "bold green", Finding.FASTER: "bold green", Finding.AMBIGUOUS: "bold yellow"}


def print_reproduction(result: Reproduction, console: Console) -> None:
    """The finding, both results, and the differences in environment."""
    console.print(
        f"attempt {result.attempt_id}: {result.finding.value.replace('_', ' ')}",
        style=STYLE.get(result.finding, "bold red"),
    )
    console.print(clean(result.reason), soft_wrap=True)
    _print_alterations(result.alterations, console)
    for label, verification in (("then", result.then), ("now", result.now)):
        if verification is not None:
            console.print(f"{label:<5} {clean(_line(verification))}", soft_wrap=True)
    for field, (then, now) in result.differences.items():
        console.print(f"  {field}: {clean(str(then))} then, {clean(str(now))} now", soft_wrap=True)
    if result.now is not None and not result.differences:
        console.print("the environment is the same")
    if result.verification_id is not None:
        console.print(f"kept as verification {result.verification_id}: kernelproof show {result.attempt_id}")


def print_tampering(path: Path, tampering: Sequence[str], console: Console) -> None:
    """Prints the signs that a bundle was edited."""
    console.print(f"{clean(str(path))}: tampered", style="bold red", soft_wrap=True)
    console.print("the bundle is not what its manifest says; nothing was run", soft_wrap=True)
    _print_alterations(tampering, console)


def print_bundle(path: Path, sha256: str, attempts: Mapping[int, Bundled | None], console: Console) -> None:
    """Prints the attempts of a bundle. None: an attempt whose records cannot be read."""
    console.print(f"{clean(str(path))}: {counted(len(attempts), 'attempt')}, sha256 {sha256}", soft_wrap=True)
    rows = [
        (str(number), *(_row(a) if a else ("cannot be read", *[""] * 5))) for number, a in attempts.items()
    ]
    print_table(console, ("attempt", "problem", "model", "status", "speedup", "device", "verified"), rows)


def _row(attempt: Bundled) -> tuple[str, ...]:
    claim = attempt.verification
    speedup = times(claim.measurement.speedup) if claim.measurement else ""
    device = claim.environment.device_name if claim.environment else ""
    return attempt.problem.id, attempt.run.model, claim.status, speedup, device, claim.created


def _print_alterations(alterations: Sequence[str], console: Console) -> None:
    for alteration in alterations:
        console.print(f"  tampered: {clean(alteration)}", soft_wrap=True)


def _line(verification: Verification) -> str:
    device = verification.environment.device_name if verification.environment else "no device"
    measured = verification.measurement
    if measured is None:
        return f"{verification.status} on {device}, {verification.created}"
    said = f"{finding_of(measured)}, {against(measured.candidate_ms, measured.baseline_ms)}"
    return f"{verification.status}, {said} on {device}, {verification.created}"
