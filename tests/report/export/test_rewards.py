"""Training pairs equal an independent computation from what was stored, on random data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelproof.choices import RewardName
from kernelproof.db.attempts import Finished
from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store
from kernelproof.report.export.columns import gather
from kernelproof.report.export.formats import write_pairs
from kernelproof.types import Status, VerifySettings
from tests.db import samples
from tests.db.scores.filling import fill, fresh, turns, words
from tests.db.scores.reference import JUDGES_NOTHING, Turn

RUN = samples.settings()
OTHER = samples.settings("openai:other", VerifySettings(backend="cpp", size="small", numerics="tf32"))
FORMULAS: dict[RewardName, Callable[[float, float], float]] = {
    "score": lambda low, speedup: low,
    "correct": lambda low, speedup: 1.0,
    "speedup": lambda low, speedup: speedup,
    "correct-and-speedup": lambda low, speedup: 0.3 + speedup,
}
"""The reward of a correct and measured program."""
Line = tuple[int, str, str, str, str, float]


def expected(made: dict[int, Turn], numerics: str, reward: RewardName) -> list[Line]:
    """Attempt, numerics, question, answer, status and reward of each pair."""
    pairs = []
    for attempt, turn in made.items():
        if turn.status in JUDGES_NOTHING:
            continue
        value = 0.0
        if turn.status == "correct":
            if turn.speedup is None and reward != "correct":
                continue
            value = FORMULAS[reward](turn.ranking, turn.counted)
        texts = (f"Question on {words(turn)}", f"Answer on {words(turn)}")
        pairs.append((attempt, numerics, *texts, turn.status, round(value, 9)))
    return pairs


def written(store: Store, folder: Path, reward: RewardName) -> tuple[list[Line], list[int]]:
    """The same as the export has it, and the counts that it says."""
    path = folder / "pairs.jsonl"
    said = write_pairs(gather(store, Filters()), path, reward)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        (
            *(line["attempt_id"], line["numerics"], line["prompt"][-1]["content"], line["response"]),
            *(line["status"], round(line["reward"], 9)),
        )
        for line in lines
    ], [int(sentence.split()[0].replace(",", "")) for sentence in said]


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(turns(problems=2, samples_each=3), turns(problems=2, samples_each=2), st.data())
def test_pairs_equal_a_computation_from_the_attempts(
    empty_database: Path, tmp_path: Path, first: list[Turn], second: list[Turn], data: st.DataObject
) -> None:
    """Some attempts are judged again or retracted; a program given as a file is no pair."""
    with fresh(empty_database, tmp_path) as store:
        ours = dict(zip(fill(store, RUN, first), first, strict=True))
        others = dict(zip(fill(store, OTHER, second), second, strict=True))
        given_file = samples.settings("file").model_copy(update={"kind": "verify"})
        judged = samples.verification(samples.problem(1), speedup=3.0)
        answer, program = samples.response(), samples.extraction()
        store.add_finished(Finished(given_file, samples.problem(1), answer, program, judged, Status.CORRECT))
        for attempt in data.draw(st.sets(st.sampled_from(sorted(ours)), max_size=3)):
            before = ours.pop(attempt)
            problem = samples.problem(int(before.problem.rpartition("/")[2]))
            if data.draw(st.booleans()):
                store.record_verification(attempt, samples.verification(problem, speedup=4.0), "again")
                place = (before.problem, before.sample, before.turn)
                ours[attempt] = Turn(attempt, *place, "correct", 4.0, 4.0 * 0.99)
            elif found := store.load_attempt(attempt).verifications:
                store.retract(found[0].id, "why not")
            else:
                ours[attempt] = before
        for reward in get_args(RewardName):
            wanted = expected(ours, "fp32", reward) + expected(others, "tf32", reward)
            lines, counts = written(store, tmp_path, reward)
            assert sorted(lines) == sorted(wanted)
            without_reward = len(ours) + len(others) - len(wanted)
            assert counts == [len(wanted), 1, *([without_reward] if without_reward else [])]
