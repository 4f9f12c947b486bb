"""The formats of `kernelproof export`: Parquet, JSON Lines, training pairs, KernelBench's files, others."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from kernelproof.choices import RewardName
from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_json
from kernelproof.report.export.columns import FIELDS, Columns, Export
from kernelproof.report.export.files import (
    json_of,
    left_out,
    markdown_text,
    new_file,
    new_folder,
    open_text,
    write_parquet,
)
from kernelproof.report.layout import setting_line
from kernelproof.types import Setting
from kernelproof.types.exchange import FILTERED, LIMITED
from kernelproof.version import POLICY, __version__
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
        "huggingface": partial(write_huggingface, licence=licence),
        "kernelbench": write_kernelbench,
        "inspect": write_inspect,
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


SHARD = 50_000
_NAMED = 50
"""Most models, devices and problem suites that the card names."""


def write_huggingface(export: Export, folder: Path, licence: str) -> list[str]:
    """Writes the files and the card; what is to be said of it. `licence`: as Hugging Face names it."""
    seen: dict[str, Counter[str]] = {name: Counter() for name in ("model", "device", "suite")}

    def counting() -> Iterator[Columns]:
        for row in export.rows():
            for name, counts in seen.items():
                counts[row[name] or "none"] += 1
            yield row

    (folder / "data").mkdir()
    shards, rows = -(-len(export.chosen) // SHARD), counting()
    for number in range(shards):
        file = folder / "data" / f"train-{number:05}-of-{shards:05}.parquet"
        write_parquet(FIELDS, (row.values() for row in islice(rows, SHARD)), file)
    filters = export.filters.model_dump(mode="json", exclude_defaults=True)
    facts = {
        "Filters": ", ".join(f"{name} {markdown_text(value)}" for name, value in filters.items()) or "none",
        **{f"{name.capitalize()}s": _listed(counts) for name, counts in seen.items()},
    }
    lines = [*(f"{name}: {fact}." for name, fact in facts.items()), *map(markdown_text, export.remarks)]
    card = _CARD.format(
        licence=licence,
        attempts=counted(len(export.chosen), "attempt"),
        facts="".join(f"- {line}\n" for line in lines),
        columns="".join(f"| `{field.name}` | {field.meaning} |\n" for field in FIELDS),
    )
    (folder / "README.md").write_text(card, encoding="utf-8", newline="\n")
    return [counted(len(export.chosen), "row")]


def _listed(counts: Counter[str]) -> str:
    named = [f"{markdown_text(name)} ({count})" for name, count in counts.most_common(_NAMED)]
    return ", ".join(named) + (f" and {len(counts) - _NAMED} more" if len(counts) > _NAMED else "")


_CARD = f"""\
---
license: {{licence}}
pretty_name: GPU kernels written by language models, verified
task_categories: [text-generation]
tags: [code, gpu-kernels, kernelproof]
configs:
- config_name: default
  data_files:
  - split: train
    path: data/*.parquet
---

# GPU kernels written by language models, verified

{{attempts}} at making a PyTorch program faster, each with the question, the answer, the program, and the
verdict of kernelproof {__version__}. A row is one attempt under one setting.

**The programs were written by language models. Run them only in a sandbox.** All texts are as they came:
they may hold control characters, markup, and instructions.

## Provenance

Verified under policy {POLICY}, unless the column `policy` says otherwise. Speedups are against PyTorch's
eager mode on the same device, with 95 % intervals. Results of different settings (`backend`, `size`,
`device`, `numerics`, `purity`, `own_kernel`) are not to be merged.

{{facts}}
## Licence

`{{licence}}`, as the maker of this export said. Three parties may have rights: the authors of the problems
(column `reference`, and parts of `messages`), the providers of the models (their terms say what their
answers may be used for, training among it), and the person who asked. kernelproof claims none.

## Columns

| column | meaning |
|---|---|
{{columns}}"""


_HEAD = (
    *("run_id", "run", "model", "template", "created", "finished", *Setting.model_fields),
    *("problem_id", "sample", "judged", "correct"),
)
"""Columns of a sample that the head of its log counts."""


def write_inspect(export: Export, folder: Path) -> list[str]:
    """Writes a log in version 2 of inspect-ai's JSON for each run and setting; what is to be said of it.

    A sample of theirs is the deciding turn of one of ours. Samples lie in a file until the head is known.
    """
    settings: dict[int, list[Columns]] = {}
    logs: dict[str, list[Columns]] = {}
    for row in export.rows(deciding=True):
        ours = settings.setdefault(row["run_id"], [])
        setting = {name: row[name] for name in Setting.model_fields}
        if setting not in ours:
            ours.append(setting)
        name = f"run-{row['run_id']}-setting-{ours.index(setting) + 1}"
        logs.setdefault(name, []).append({name: row[name] for name in _HEAD})
        with (folder / name).open("a", encoding="ascii") as samples:
            samples.write(json_of(_sample(row)) + "\n")
    for name, rows in logs.items():
        began = min(row["created"] for row in rows)[:19].replace(":", "-")  # as inspect-ai names its files
        path, part = folder / f"{began}_kernelproof_{name}.json", folder / name
        with open_text(path) as file, part.open(encoding="ascii") as lines:
            file.write(json_of(_head(rows)).removesuffix("}") + ', "samples": [\n')
            file.writelines(f"{',' if number else ''}{line}" for number, line in enumerate(lines))
            file.write("]}\n")
        part.unlink()
    return [f"{counted(len(logs), 'log')} with {counted(sum(map(len, logs.values())), 'sample')}"]


def _head(rows: list[Columns]) -> dict[str, Any]:
    first, judged = rows[0], [row["correct"] for row in rows if row["judged"]]
    setting = {name: first[name] for name in Setting.model_fields}
    named = {name: first[name] for name in ("run", "run_id", "template")}
    identity = sha256_json([first["model"], first["created"], named, setting])
    problems = list(dict.fromkeys(row["problem_id"] for row in rows))
    accuracy = {"name": "accuracy", "value": sum(judged) / max(len(judged), 1)}
    scores = {"scored_samples": len(judged), "unscored_samples": len(rows) - len(judged)}
    began, ended = min(r["created"] for r in rows), max(r["finished"] or r["created"] for r in rows)
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": identity[:22],
            "run_id": identity[22:44],
            "task_id": identity[42:64],
            "created": began,
            "task": "kernelproof",
            "task_version": POLICY,
            "task_args": setting,
            "dataset": {"name": "kernelproof", "samples": len(problems), "sample_ids": problems},
            "model": first["model"],
            "config": {"epochs": max(row["sample"] for row in rows) + 1},
            "packages": {"kernelproof": __version__},
            "metadata": named,
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": len(rows),
            "completed_samples": len(judged),
            "scores": [
                {"name": "verified", "scorer": "verified", **scores, "metrics": {"accuracy": accuracy}}
            ],
        },
        "stats": {"started_at": began, "completed_at": ended, "model_usage": {}},
    }


def _sample(row: Columns) -> dict[str, Any]:
    """A sample. One that this machine or the server failed has an error instead of scores."""
    question = row["messages"] or [{"role": "user", "content": row["reference"]}]
    answer = {"role": "assistant", "content": row["response"] or "", "source": "generate"}
    why = (row["finish_reason"] or "").lower()
    stop = "max_tokens" if why in LIMITED else "content_filter" if why in FILTERED else "stop"
    tokens = {"input_tokens": row["prompt_tokens"] or 0, "output_tokens": row["completion_tokens"] or 0}
    more = {"input_tokens_cache_read": row["cached_tokens"], "reasoning_tokens": row["reasoning_tokens"]}
    known = ("status", "attempt_id", "turn", "problem_sha256", "level", "reference")
    sample: dict[str, Any] = {
        "id": row["problem_id"],
        "epoch": row["sample"] + 1,
        "input": question,
        "target": "",
        "messages": [*question, answer],
        "output": {
            "model": row["served_model"] or row["model"],
            "choices": [] if row["response"] is None else [{"message": answer, "stop_reason": stop}],
            "time": row["latency_s"],
            "usage": {**tokens, "total_tokens": sum(tokens.values()), **more},
        },
        "metadata": {name: row[name] for name in known},
    }
    if not row["judged"]:
        return {**sample, "error": {"message": row["reason"], "traceback": "", "traceback_ansi": ""}}
    verified = {
        "value": "C" if row["correct"] else "I",
        "answer": row["source"],
        "explanation": row["reason"],
    }
    scores = {"verified": {**verified, "metadata": {"verification_id": row["verification_id"]}}}
    if row["speedup"] is not None:
        ends = {name: row[f"speedup_{name}"] for name in ("low", "high")}
        words = f"{row['pace']}: {ends['low']:.4g} to {ends['high']:.4g}"
        times = {"value": row["speedup"], "explanation": words, "metadata": {**ends, "pace": row["pace"]}}
        scores["speedup"] = times
    return {**sample, "scores": scores}
