"""A data set folder for Hugging Face: Parquet files and a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from kernelproof.report.export.columns import FIELDS, Columns, Export
from kernelproof.report.export.files import markdown_text, write_parquet
from kernelproof.version import POLICY, __version__
from kernelproof.wording import counted

SHARD = 50_000
_NAMED = 50
"""Most models, devices and problem suites that the card names."""


def write(export: Export, folder: Path, licence: str) -> list[str]:
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
