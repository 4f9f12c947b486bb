"""A measurement on screen: speedups with their intervals, both clocks, the roofline, how it was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from kernelproof.report.layout import between, pairs, percent, print_facts, scaled
from kernelproof.types import Against, Measurement, Replayed, Roofline
from kernelproof.wording import counted

REASONS = 3
"""Different reasons for disturbed blocks that are shown."""


def print_measurement(m: Measurement, console: Console) -> None:
    """One line a fact; a fact that was not measured has none."""
    print_facts(console, measurement_facts(m))


def measurement_facts(m: Measurement) -> dict[str, str]:
    """Name and fact; empty where it was not measured."""
    return {
        "speedup": _speedup(m),
        "candidate": f"{m.candidate_ms:.6g} ms" + (", launch-bound" if m.launch_bound else ""),
        m.baseline: f"{m.baseline_ms:.6g} ms",
        **{f"against {a.baseline}": _against(a) for a in m.against},
        "as CUDA graph": _replayed(m.replayed, m.baseline) if m.replayed else "",
        "clocks": _clocks(m),
        "roofline": _roofline(m.roofline) if m.roofline else "",
        "ceilings": _ceilings(m.roofline) if m.roofline else "",
        "resolution": f"{percent(m.resolution)}, A/A spread {percent(m.aa_spread)}",
        "samples": _samples(m),
        "sessions": _sessions(m.sessions),
        "disturbed": _disturbed(m.disturbed),
        "clocks before": pairs(m.clocks_before),
        "clocks after": pairs(m.clocks_after),
    }


def _speedup(m: Measurement | Against) -> str:
    said = f"{m.speedup:.3f} (95 % interval {between(m.speedup_interval)}): {m.pace}"
    return f"{said}, since {m.unresolved_because}" if m.unresolved_because else said


def _against(a: Against) -> str:
    times = f"{a.baseline_ms:.6g} ms, measured {a.measured}"
    return f"{_speedup(a)}; {times}"


def _replayed(replayed: Replayed, baseline: str) -> str:
    """Both times without their launches; the ratio has no interval, so no pace is claimed."""
    mine, other = replayed.candidate_ms, replayed.baseline_ms
    said = [
        f"candidate {mine:.6g} ms" if mine is not None else "the candidate cannot be captured",
        f"{baseline} {other:.6g} ms" if other is not None else f"{baseline} cannot be captured",
    ]
    if mine and other:
        said.append(f"ratio {other / mine:.3f}")
    return ", ".join(said)


def _clocks(m: Measurement) -> str:
    inside = f"inside {m.inside_ms:.6g} ms, " if m.inside_ms is not None else ""
    hidden = f", {m.unseen_ms:.3g} ms of it not shown inside" if m.unseen_ms else ""
    return f"{inside}host {m.host_ms:.6g} ms a call{hidden}; {m.overhead_ms:.3g} ms overhead taken off"


def _roofline(r: Roofline) -> str:
    moved = f"{scaled(r.bytes_read, 'B')} read, {scaled(r.bytes_written, 'B')} written"
    said = [f"{percent(r.fraction)} of the roofline", f"{moved}: at least {r.memory_ms:.4g} ms"]
    if r.operations:
        said.append(f"{scaled(r.operations, 'op')}: at least {r.compute_ms:.4g} ms")
    said.append(f"no program can take less than {r.needed_ms:.4g} ms")
    return "; ".join(said)


def _ceilings(r: Roofline) -> str:
    c = r.ceilings
    rates = f"{scaled(c.bytes_per_s, 'B/s')}, {scaled(c.operations_per_s, 'op/s')}"
    return (
        f"{rates}, {scaled(c.cache_bytes, 'B')} may stay in the cache; "
        f"A/A spread of processes {percent(c.aa_spread)}; measured {c.measured}"
    )


def _samples(m: Measurement) -> str:
    calls = ""
    if m.calls:
        few, many = min(m.calls), max(m.calls)
        calls = f" of {counted(few, 'call')}" if few == many else f" of {few} to {many} calls"
    blocks = counted(len(m.order), "block")
    return (
        f"{sum(map(len, m.candidate_samples_ms))} in {blocks}{calls} ({' '.join(m.order)}), "
        f"{counted(m.slots, 'input set')}, {m.flush_bytes} bytes flushed between calls"
    )


def _sessions(sessions: Sequence[int]) -> str:
    """How many pairs of processes, and how many blocks each; nothing for a single pair."""
    blocks = Counter(sessions)
    if len(blocks) < 2:
        return ""
    counts = ", ".join(str(blocks[session]) for session in sorted(blocks))
    return f"{counted(len(blocks), 'pair')} of fresh processes, with {counts} blocks"


def _disturbed(reasons: Sequence[str]) -> str:
    """How many blocks were thrown away, and the commonest reasons with how often each occurred."""
    if not reasons:
        return ""
    often = Counter(reasons).most_common()
    said = [reason if count == 1 else f"{reason} ({count} times)" for reason, count in often[:REASONS]]
    rest = [f"{len(often) - REASONS} more"] if len(often) > REASONS else []
    return f"{counted(len(reasons), 'block')} repeated: {'; '.join(said + rest)}"
