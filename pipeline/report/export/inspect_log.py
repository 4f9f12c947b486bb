"""Logs in the JSON format of inspect-ai (version 2 of its log), one for each run and setting.

`inspect view --log-dir FOLDER` shows them, and `inspect_ai.log.read_eval_log` reads them. A sample of theirs
is the deciding turn of one of ours: its `id` is the problem, its `epoch` the sample, from 1. Nothing of
inspect-ai is needed to write them.
"""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from kernelproof.db.scores.records import Setting
from kernelproof.hashing import sha256_json
from kernelproof.report.export.gathering import Export, Row
from kernelproof.report.export.writing import json_of, open_text
from kernelproof.types import RunSettings
from kernelproof.types.exchange import FILTERED, LIMITED
from kernelproof.version import POLICY, __version__

_TASK = "kernelproof"
_SCORER = "verified"


def write(export: Export, folder: Path) -> tuple[int, int]:
    """Writes the logs; how many logs and samples there are."""
    logs: dict[tuple[int, Setting], _Log] = {}
    with ExitStack() as open_logs:
        for row in export.rows(export.chosen.deciding()):
            run_id, setting = key = row.attempt.run_id, row.setting
            if key not in logs:
                number = sum(run == run_id for run, _ in logs) + 1
                name = f"run-{run_id}-setting-{number}"
                logs[key] = _Log(folder, name, run_id, row.attempt.run, setting)
                open_logs.enter_context(logs[key].samples)
            logs[key].add(row)
    for log in logs.values():
        log.finish()
    return len(logs), sum(log.count for log in logs.values())


class _Log:
    """One log: its samples are written as they come, its head when their counts are known."""

    def __init__(self, folder: Path, name: str, run_id: int, run: RunSettings, setting: Setting) -> None:
        self._folder, self._name = folder, name
        self._run_id, self._run, self._setting = run_id, run, setting
        self._part = folder / f"{name}.samples"
        self.samples: TextIO = open_text(self._part)
        self.count = 0
        self._scored: Counter[bool] = Counter()
        self._problems: dict[str, None] = {}
        self._epochs = 0
        self._times: list[str] = []

    def add(self, row: Row) -> None:
        """A sample."""
        self.samples.write(("," if self.count else "") + "\n" + json_of(sample(row)))
        self.count += 1
        if row.status.counts_against_model:
            self._scored[row.status.value == "correct"] += 1
        self._problems[row.attempt.problem.id] = None
        self._epochs = max(self._epochs, row.attempt.key.sample + 1)
        moments = [row.attempt.created, row.attempt.finished or row.attempt.created]
        self._times = [min([*self._times, *moments]), max([*self._times, *moments])]

    def finish(self) -> None:
        """The file, from its head and its samples."""
        head = json_of(self._head(), indent=2)
        began = datetime.fromisoformat(self._times[0]).strftime("%Y-%m-%dT%H-%M-%S")
        path = self._folder / f"{began}_{_TASK}_{self._name}.json"  # inspect-ai looks for such names
        with open_text(path) as file, self._part.open(encoding="ascii") as samples:
            file.write(head.removesuffix("\n}") + ',\n  "samples": [')
            shutil.copyfileobj(samples, file)
            file.write("\n  ]\n}\n")
        self._part.unlink()

    def _head(self) -> dict[str, Any]:
        scored = self._scored.total()
        identity = sha256_json([self._run.key, self._setting.model_dump(mode="json")])
        return {
            "version": 2,
            "status": "success",
            "eval": {
                "eval_id": identity[:22],
                "run_id": self._run.key[:22],
                "task_id": identity[22:44],
                "created": self._times[0],
                "task": _TASK,
                "task_version": POLICY,
                "task_attribs": {},
                "task_args": self._setting.model_dump(mode="json"),
                "dataset": {
                    "name": _TASK,
                    "samples": len(self._problems),
                    "sample_ids": list(self._problems),
                    "shuffled": False,
                },
                "model": self._run.model,
                "model_base_url": self._run.base_url,
                "model_args": {},
                "config": {"epochs": self._epochs},
                "packages": {"kernelproof": __version__},
                "metadata": {"run": self._run.name, "run_id": self._run_id, "template": self._run.template},
            },
            "plan": {"name": "plan", "steps": [], "config": {}},
            "results": {
                "total_samples": self.count,
                "completed_samples": scored,
                "scores": [
                    {
                        "name": _SCORER,
                        "scorer": _SCORER,
                        "params": {},
                        "scored_samples": scored,
                        "unscored_samples": self.count - scored,
                        "metrics": {
                            "accuracy": {
                                "name": "accuracy",
                                "value": self._scored[True] / scored if scored else 0.0,
                                "params": {},
                            }
                        },
                    }
                ],
            },
            "stats": {"started_at": self._times[0], "completed_at": self._times[1], "model_usage": {}},
        }


def sample(row: Row) -> dict[str, Any]:
    """A sample. One that this machine or the server failed has an error instead of scores."""
    asked: list[dict[str, Any]] = [dict(message) for message in row.messages or ()]
    given = asked or [{"role": "user", "content": row.attempt.problem.source}]
    answer = {"role": "assistant", "content": row.answer or "", "source": "generate"}
    made: dict[str, Any] = {
        "id": row.attempt.problem.id,
        "epoch": row.attempt.key.sample + 1,
        "input": given,
        "target": "",
        "messages": [*given, answer],
        "output": _output(row, answer),
        "metadata": {
            "status": row.status.value,
            "attempt_id": row.attempt.id,
            "turn": row.attempt.key.turn,
            "problem_sha256": row.attempt.problem.sha256,
            "level": row.attempt.problem.level,
            "reference": row.attempt.problem.source,
        },
    }
    if not row.status.counts_against_model:
        told = {"message": row.reason, "traceback": "", "traceback_ansi": ""}
        return {**made, "error": told}
    measured = row.measured
    scores: dict[str, Any] = {
        _SCORER: {
            "value": "C" if row.status.value == "correct" else "I",
            "answer": row.attempt.source,
            "explanation": row.reason,
            "metadata": {"verification_id": row.judged.id if row.judged else None},
        }
    }
    if measured is not None:
        low, high = measured.speedup_interval.low, measured.speedup_interval.high
        scores["speedup"] = {
            "value": measured.speedup,
            "explanation": f"{measured.pace.value}: {low:.4g} to {high:.4g}",
            "metadata": {"low": low, "high": high, "pace": measured.pace.value},
        }
    return {**made, "scores": scores}


def _output(row: Row, answer: dict[str, Any]) -> dict[str, Any]:
    response = row.attempt.response
    if response is None:
        return {"model": row.attempt.run.model, "choices": []}
    reason = (response.finish_reason or "").lower()
    stop = "max_tokens" if reason in LIMITED else "content_filter" if reason in FILTERED else "stop"
    output: dict[str, Any] = {
        "model": response.served_model or row.attempt.run.model,
        "choices": [{"message": answer, "stop_reason": stop}],
        "time": response.latency_s,
    }
    if response.usage is not None:
        usage = response.usage
        asked, answered = usage.prompt_tokens or 0, usage.completion_tokens or 0
        output["usage"] = {
            "input_tokens": asked,
            "output_tokens": answered,
            "total_tokens": asked + answered,
            "input_tokens_cache_read": usage.cached_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        }
    return output
