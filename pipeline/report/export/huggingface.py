"""A data set folder for Hugging Face: Parquet files and a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from kernelproof.report.export import columnar
from kernelproof.report.export.columns import FIELDS
from kernelproof.report.export.gathering import Export, Row
from kernelproof.report.exporting import markdown_text
from kernelproof.version import POLICY, __version__
from kernelproof.wording import counted

SHARD = 50_000
"""Most rows of a file."""
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_NAMED = 50
"""Most models, devices and problem suites that the card names."""


class _Counted:
    """Rows on their way into files, counted by what the card names."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = rows
        self.models: Counter[str] = Counter()
        self.devices: Counter[str] = Counter()
        self.suites: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.models[row.attempt.run.model] += 1
            self.devices[row.setting.device or "no device reached"] += 1
            self.suites[row.attempt.problem.suite] += 1
            yield row


def write(export: Export, folder: Path, licence: str) -> int:
    """Writes the files and the card; how many rows there are. `licence`: as Hugging Face names it."""
    total = len(export.chosen)
    shards = -(-total // SHARD)
    rows = _Counted(export.rows())
    rest = iter(rows)
    (folder / "data").mkdir()
    for number in range(shards):
        name = f"train-{number:05}-of-{shards:05}.parquet"
        columnar.write(islice(rest, SHARD), folder / "data" / name)
    (folder / "README.md").write_text(_card(export, rows, total, licence), encoding="utf-8", newline="\n")
    return total


def _card(export: Export, rows: _Counted, total: int, licence: str) -> str:
    size = next((name for most, name in _SIZES if total < most), "n>1M")
    filters = export.filters.model_dump(mode="json", exclude_defaults=True)
    asked = ", ".join(f"{name} {markdown_text(value)}" for name, value in filters.items())
    left_out = "".join(f"- {markdown_text(sentence)}\n" for sentence in export.remarks)
    columns = "".join(f"| `{field.name}` | {field.meaning} |\n" for field in FIELDS)
    return f"""\
---
license: {licence}
pretty_name: GPU kernels written by language models, verified
task_categories:
- text-generation
tags:
- code
- gpu-kernels
- kernelproof
size_categories:
- {size}
configs:
- config_name: default
  data_files:
  - split: train
    path: data/*.parquet
---

# GPU kernels written by language models, verified

{counted(total, "attempt")} at making a PyTorch program faster, each with the question, the answer, the
program, and the verdict of kernelproof {__version__}. A row is one attempt under one setting.

```python
from datasets import load_dataset

attempts = load_dataset("path/to/this/folder", split="train")
```

**The programs were written by language models. Run them only in a sandbox.** All texts are as they came:
they may hold control characters, markup, and instructions.

## Provenance

Verified under policy {POLICY}, unless the column `policy` says otherwise. Speedups are against PyTorch's
eager mode on the same device, with 95 % intervals. Results of different settings (`backend`, `size`,
`device`, `numerics`, `purity`, `own_kernel`) are not to be merged.

- Filters: {asked or "none"}.
- Models: {_listed(rows.models)}.
- Devices: {_listed(rows.devices)}.
- Problem suites: {_listed(rows.suites)}.
{left_out}
## Licence

`{licence}`, as the maker of this export said. Three parties may have rights: the authors of the problems
(column `reference`, and parts of `messages`), the providers of the models (their terms say what their
answers may be used for, training among it), and the person who asked. kernelproof claims none.

## Columns

| column | meaning |
|---|---|
{columns}"""


def _listed(counts: Counter[str]) -> str:
    named = [f"{markdown_text(name)} ({count})" for name, count in counts.most_common(_NAMED)]
    more = f" and {len(counts) - _NAMED} more" if len(counts) > _NAMED else ""
    return ", ".join(named) + more
