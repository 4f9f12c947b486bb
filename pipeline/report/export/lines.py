"""JSON lines: all of each attempt, or training pairs."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from kernelproof.choices import RewardName
from kernelproof.report.export.columns import FIELDS
from kernelproof.report.export.gathering import Export, Row
from kernelproof.report.export.rewards import REWARDS
from kernelproof.report.export.writing import json_of, open_text

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

PAIR: dict[str, str] = {
    "prompt": "The question: messages with `role` and `content`.",
    "response": "The answer's text, as it came.",
    "reward": "By the formula that `--reward` names.",
    "reward_formula": "The name of that formula.",
} | {
    field.name: field.meaning
    for field in FIELDS
    if field.name
    in (
        *("attempt_id", "verification_id", "run", "model", "problem_id", "problem_sha256", "sample", "turn"),
        *("status", "correct", "speedup", "speedup_low", "speedup_high", "pace", "backend", "size"),
        *("device", "numerics", "purity", "own_kernel", "policy"),
    )
}
"""The keys of a line of `pairs`."""
_FACTS = [field for field in FIELDS if field.name in PAIR]


def write_attempts(export: Export, path: Path) -> int:
    """A line for each attempt; how many there are."""
    by_attempt = export.chosen.by_attempt()
    numbers = dict.fromkeys(by_attempt.attempts.tolist())
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
    return len(numbers)


class Pairs(NamedTuple):
    """Counts of the attempts: pairs that are written, and attempts that are left out."""

    written: int
    without_question: int
    """Programs given as files, and questions without an answer."""
    without_reward: int
    """Attempts without a verdict on the model, or without the time that the reward needs."""


def write_pairs(export: Export, path: Path, reward: RewardName) -> Pairs:
    """A line for each attempt with a question, an answer and a reward."""
    written = without_question = without_reward = 0
    with open_text(path) as file:
        for row in export.rows():
            value = REWARDS[reward].of(row) if row.status.counts_against_model else None
            if row.messages is None or row.answer is None:
                without_question += 1
            elif value is None:
                without_reward += 1
            else:
                file.write(json_of(_pair(row, value, reward)) + "\n")
                written += 1
    return Pairs(written, without_question, without_reward)


def _pair(row: Row, value: float, reward: RewardName) -> dict[str, Any]:
    pair = {"prompt": row.messages, "response": row.answer, "reward": value, "reward_formula": reward}
    return pair | {field.name: field.cell(row) for field in _FACTS}
