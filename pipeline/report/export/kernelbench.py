"""A run as KernelBench's own scripts and `kernelproof import` read it: a folder for each level."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from kernelproof.errors import UsageError
from kernelproof.report.export.columns import Columns, Export
from kernelproof.report.export.writing import json_of, left_out
from kernelproof.report.tables import setting_line
from kernelproof.wording import counted


def write(export: Export, folder: Path) -> list[str]:
    """Writes the deciding turn of each sample; what is to be said of it. Only entries without programs are
    kept in memory. Raises UsageError for several runs or settings: KernelBench numbers samples of one."""
    kinds = dict.fromkeys((each.run_id, each.setting) for each in export.chosen.deciding())
    if len(kinds) > 1:
        named = [f"run {run} ({setting_line(setting)})" for run, setting in [*kinds][:5]]
        more = f" and {len(kinds) - 5} more" if len(kinds) > 5 else ""
        raise UsageError(
            f"KernelBench's files hold one run under one setting, and there are: {', '.join(named)}{more}; "
            "choose with --run, --gpu, --size and the other filters"
        )
    entries: defaultdict[str, defaultdict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    times: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    counts: Counter[str] = Counter()
    for row in export.rows(deciding=True):
        place = re.fullmatch(r"(level(\d{1,6}))/(\d{1,6})", row["problem_id"])
        what = "elsewhere" if place is None else "samples" if row["judged"] else "unjudged"
        counts[what] += 1
        if place is None or not row["judged"]:
            continue
        name, level, number = place[1], int(place[2]), int(place[3])
        (folder / name).mkdir(exist_ok=True)
        entries[name][str(number)].append(_entry(row))
        if row["baseline_ms"] is not None:
            times[name][f"{number}_{row['problem']}.py"].append(row["baseline_ms"])
        if row["source"] is not None:
            program = folder / name / f"level_{level}_problem_{number}_sample_{row['sample']}_kernel.py"
            program.write_bytes(row["source"].encode("utf-8", "surrogatepass"))
    for name, problems in entries.items():
        medians = {problem: {"mean": statistics.median(ms)} for problem, ms in times[name].items()}
        (folder / name / "eval_results.json").write_text(json_of(problems, indent=1))
        (folder / name / "baseline_time_eager.json").write_text(json_of({name: medians}, indent=1))
    return [
        counted(counts["samples"], "sample"),
        *left_out(counts["elsewhere"], "sample", "their problems are not numbered in a level"),
        *left_out(counts["unjudged"], "sample", "the machine or the server failed, not the model"),
    ]


def _entry(row: Columns) -> dict[str, Any]:
    """A sample as KernelBench writes it. Times are in milliseconds; -1 says that nothing was measured."""
    metadata = {name: row[name] for name in ("status", "reason", "turn")}
    metadata |= {"hardware": row["device"], "kernelproof_attempt": row["attempt_id"]}
    stats: dict[str, Any] = {}
    if row["speedup"] is not None:
        metadata |= {name: row[name] for name in ("speedup", "pace")}
        stats = {"mean": row["candidate_ms"], "num_trials": row["calls"] or 0}
    if row["calls"]:
        stats |= {name: row[f"call_ms_{name}"] for name in ("std", "min", "max")}
    return {
        "sample_id": row["sample"],
        "compiled": row["built"],
        "correctness": row["correct"],
        "metadata": metadata,
        "runtime": -1.0 if row["candidate_ms"] is None else row["candidate_ms"],
        "runtime_stats": stats,
    }
