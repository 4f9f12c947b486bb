"""Training pairs as JSON Lines: question, answer, and a reward by one of four formulas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kernelproof.choices import RewardName
from kernelproof.report.export.columns import FIELDS, Columns, Export
from kernelproof.report.export.writing import json_of, left_out, open_text
from kernelproof.types import Setting
from kernelproof.wording import counted

SHARE_OF_CORRECT = 0.3
KEPT = (
    *("attempt_id", "verification_id", "run", "model", "problem_id", "problem_sha256", "sample", "turn"),
    *("status", "correct", *Setting.model_fields, "policy", "speedup", "speedup_low", "speedup_high", "pace"),
)
"""Columns that a pair has as well."""
PAIR = {
    "prompt": "The question: messages with `role` and `content`.",
    "response": "The answer's text, as it came.",
    "reward": "By the formula that `--reward` names.",
    "reward_formula": "The name of that formula.",
} | {field.name: field.meaning for field in FIELDS if field.name in KEPT}
"""The keys of a line."""


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


def write(export: Export, path: Path, reward: RewardName) -> list[str]:
    """Writes a line for each attempt with a question, an answer and a reward; what is to be said of it."""
    pairs = no_question = no_reward = 0
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
                pairs += 1
    return [
        counted(pairs, "pair"),
        *left_out(no_question, "attempt", "without a question or an answer"),
        *left_out(no_reward, "attempt", f"without what the reward {reward} needs"),
    ]
