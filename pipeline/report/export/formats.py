"""The formats of `kernelproof export`: Parquet, JSON Lines, training pairs, KernelBench's files, others."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from kernelproof.choices import RewardName
from kernelproof.errors import UsageError
from kernelproof.report.export import huggingface, inspect_log
from kernelproof.report.export.columns import FIELDS, Columns, Export
from kernelproof.report.export.files import json_of, left_out, new_file, new_folder, open_text, write_parquet
from kernelproof.report.layout import setting_line
from kernelproof.types import Setting
from kernelproof.wording import counted

ATTEMPT: dict[str, str] = {
    "format": "`kernelproof-attempt-1`.",
    "counts": "For each setting under which it counts: `verification_id` (null for none), `setting`, and "
    "`decides`, whether the sample counts by it.",
    "id": "The attempt's number.",
    "run_id": "Its run's number.",
    "run": "All settings of the run.",
    "key": "Problem, SHA-256 of its source, sample from 0, turn from 1.",
    "problem": "The problem with its source.",
    "parent_id": "The attempt that it repairs or improves.",
    "plan": "Number of the parent's plan that it carries out, from 1.",
    "status": "How the attempt ended.",
    "created": "When it began (UTC, ISO 8601).",
    "finished": "When the attempt ended.",
    "prompt": "The question: system, history, user, template; null for a program given as a file.",
    "responses": "All that the server said, errors included, in their order; the first answer counts. `raw` "
    "is the server's whole JSON.",
    "extraction": "The program that was found, or why there is none.",
    "verifications": "Every verification with its settings, environment, seeds, builds, findings, checks, "
    "samples of both clocks, and whether it is retracted.",
    "reported": "The claims about an imported program.",
    "alterations": "Texts that were edited since they were stored; empty for none.",
}
"""The keys of a line of `jsonl`. Those below them are the fields of the records in `kernelproof.types`."""


def write(form: str, export: Export, output: Path, *, reward: RewardName, licence: str) -> list[str]:
    """Writes an export in the format of that name; what is to be said of it, the most important first.

    `reward`: of pairs; `licence`: of a data set for Hugging Face. Raises UsageError where the output is in
    the way, MachineError where it cannot be written.
    """
    writers: dict[str, Callable[[Export, Path], list[str]]] = {
        "jsonl": _attempts,
        "parquet": _parquet,
        "pairs": partial(write_pairs, reward=reward),
        "huggingface": partial(huggingface.write, licence=licence),
        "kernelbench": write_kernelbench,
        "inspect": inspect_log.write,
    }
    opened = new_file if form in ("jsonl", "parquet", "pairs") else new_folder
    with opened(output) as path:
        return writers[form](export, path)


def _parquet(export: Export, path: Path) -> list[str]:
    return [counted(write_parquet(FIELDS, (row.values() for row in export.rows()), path), "row")]


def _attempts(export: Export, path: Path) -> list[str]:
    """A line for each attempt, whatever settings it counts under."""
    by_attempt = export.chosen.by_attempt()
    numbers = dict.fromkeys(each.attempt_id for each in by_attempt)
    groups = groupby(by_attempt, key=lambda each: each.attempt_id)
    with open_text(path) as file:
        for (_, group), stored in zip(groups, export.store.load_attempts(numbers), strict=True):
            counts = [
                {
                    "verification_id": each.verification_id,
                    "setting": each.setting.model_dump(mode="json"),
                    "decides": each.decides,
                }
                for each in group
            ]
            attempt = stored.model_dump(mode="json")
            file.write(json_of({"format": "kernelproof-attempt-1", "counts": counts, **attempt}) + "\n")
    return [counted(len(numbers), "attempt")]


SHARE_OF_CORRECT = 0.3
KEPT = (
    *("attempt_id", "verification_id", "run", "model", "problem_id", "problem_sha256", "sample", "turn"),
    *("status", "correct", *Setting.model_fields, "policy", "speedup", "speedup_low", "speedup_high", "pace"),
)
PAIR = {
    "prompt": "The question: messages with `role` and `content`.",
    "response": "The answer's text, as it came.",
    "reward": "By the formula that `--reward` names.",
    "reward_formula": "The name of that formula.",
} | {field.name: field.meaning for field in FIELDS if field.name in KEPT}


class Reward(NamedTuple):
    """A formula in words, and for a correct program: None where it needs a time that was not measured."""

    formula: str
    of_correct: Callable[[Columns], float | None]


_ELSE_0 = "at most 1 where the pace is unresolved; 0 where the program is not correct."
REWARDS: dict[RewardName, Reward] = {
    "score": Reward(
        f"The lower end of the speedup's 95 % interval, {_ELSE_0} The leaderboard ranks by it.",
        lambda row: row["ranking_speedup"],
    ),
    "correct": Reward("1 where the program is correct, else 0.", lambda row: 1.0),
    "speedup": Reward(f"The speedup, {_ELSE_0}", lambda row: row["counted_speedup"]),
    "correct-and-speedup": Reward(
        f"{SHARE_OF_CORRECT} and the speedup, {_ELSE_0} A correct program is worth more than a wrong one, "
        "however slow it is.",
        lambda row: None if row["speedup"] is None else SHARE_OF_CORRECT + row["counted_speedup"],
    ),
}


def write_pairs(export: Export, path: Path, reward: RewardName) -> list[str]:
    """Writes a line for each attempt with a question, an answer and a reward; what is to be said of it."""
    written = no_question = no_reward = 0
    with open_text(path) as file:
        for row in export.rows():
            value = REWARDS[reward].of_correct(row) if row["correct"] else 0.0 if row["judged"] else None
            if row["messages"] is None or row["response"] is None:
                no_question += 1
            elif value is None:
                no_reward += 1
            else:
                pair = {"prompt": row["messages"], "response": row["response"], "reward": value}
                file.write(json_of({**pair, "reward_formula": reward, **{k: row[k] for k in KEPT}}) + "\n")
                written += 1
    return [
        counted(written, "pair"),
        *left_out(no_question, "attempt", "without a question or an answer"),
        *left_out(no_reward, "attempt", f"without what the reward {reward} needs"),
    ]


def write_kernelbench(export: Export, folder: Path) -> list[str]:
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
