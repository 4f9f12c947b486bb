"""Writes docs/reference/export.md: ``python -m kernelproof.report.export.documentation``."""

from __future__ import annotations

from collections.abc import Mapping

from kernelproof.report.board_columns import columns_table
from kernelproof.report.export.columns import FIELDS
from kernelproof.report.export.formats import ATTEMPT, PAIR, REWARDS

_HEAD = """\
# Contents of exports

`kernelproof export FORMAT -o PATH` ([guide](../guide/export.md)). Columns and keys may be added; their
names and meanings stay. All JSON is ASCII and strict: infinities and NaN are null, and half of a character
(a lone surrogate, as broken servers send) is U+FFFD. Other texts are exactly as they came.
"""
_KERNELBENCH = """\
## `kernelbench`

A folder for each level of one run under one setting, `level1` and so on, with these files:

- `eval_results.json`: for each problem number a list of samples with `sample_id`, `compiled`, `correctness`,
  `metadata`, `runtime` (milliseconds, -1 where nothing was measured) and `runtime_stats` (`mean`, and of the
  single times `std`, `min`, `max`, `num_trials`). `metadata` has `hardware`, `status`, `reason`, `speedup`,
  `pace`, `turn`, and `kernelproof_attempt`.
- `baseline_time_eager.json`: for each problem the median of the baseline's times beside its samples, as
  `mean` in milliseconds.
- `level_1_problem_3_sample_0_kernel.py`: the program of a sample.

A sample is its deciding turn. KernelBench divides one baseline of a problem by each sample's time.
kernelproof measures both in turn, so its speedups differ a little.
"""
_INSPECT = """\
## `inspect`

A folder with a log of inspect-ai for each run and setting, in version 2 of its JSON format.

| of a log | is |
|---|---|
| `eval.model`, `eval.task_args` | the model; the setting |
| sample `id`, `epoch` | the problem; the sample, from 1 |
| `input`, `output` | the question of the deciding turn; the answer with its tokens |
| `scores.verified` | `C` or `I`; `answer` is the program, `explanation` the reason |
| `scores.speedup` | the speedup of a correct measured sample; `metadata` has its interval and pace |
| `error` | instead of scores: the machine or the server failed |
| `results` | accuracy over the samples with scores |
"""


def document() -> str:
    return "\n".join(
        (
            _HEAD,
            "## `parquet` and `huggingface`\n\nOne row for each attempt and setting. Null means that nothing "
            "is known. `huggingface` writes a folder with a card, `README.md`, and these rows in "
            f"`data/train-....parquet`.\n\n{columns_table(FIELDS)}",
            _table("jsonl", "A line for each attempt, with all that is stored of it.", ATTEMPT),
            _table(
                "pairs",
                "A line for each attempt that has a question, an answer and a reward. Attempts that the "
                "machine or the server failed have none.",
                PAIR,
            ),
            "### Rewards\n\n| `--reward` | is |\n|---|---|\n"
            + "".join(f"| `{name}` | {reward.formula} |\n" for name, reward in REWARDS.items()),
            _KERNELBENCH,
            _INSPECT,
        )
    )


def _table(name: str, sentence: str, keys: Mapping[str, str]) -> str:
    rows = "".join(f"| `{key}` | {meaning} |\n" for key, meaning in keys.items())
    return f"## `{name}`\n\n{sentence}\n\n| key | meaning |\n|---|---|\n{rows}"


if __name__ == "__main__":
    print(document(), end="")
