"""Logs in the JSON format of inspect-ai (version 2 of its log), one for each run and setting.

A sample of theirs is the deciding turn of one of ours. Nothing of inspect-ai is needed to write them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelproof.hashing import sha256_json
from kernelproof.report.export.columns import Columns, Export
from kernelproof.report.export.files import json_of, open_text
from kernelproof.types import Setting
from kernelproof.types.exchange import FILTERED, LIMITED
from kernelproof.version import POLICY, __version__
from kernelproof.wording import counted

_HEAD = (
    *("run_id", "run", "model", "template", "created", "finished", *Setting.model_fields),
    *("problem_id", "sample", "judged", "correct"),
)
"""Columns of a sample that the head of its log counts."""


def write(export: Export, folder: Path) -> list[str]:
    """Writes the logs; what is to be said of it. Samples lie in a file until the head is known."""
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
