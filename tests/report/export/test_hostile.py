"""Texts of others stay data in every format, and no name of a file comes from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from datasets import load_dataset
from pyarrow import parquet

from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store
from kernelproof.report.export import formats
from kernelproof.report.export.columns import gather
from kernelproof.report.plain import whole
from tests.hostile_texts import TEXTS
from tests.report.export.conftest import exporting

FORMATS = ("jsonl", "parquet", "huggingface", "pairs", "inspect")
NAMES = re.compile(
    r"out-\w+|README\.md|data|train-\d{5}-of-\d{5}\.parquet|said|[\d-]+T[\d-]+_kernelproof_run-\d+-setting-\d+\.json|level\d+"
    r"|level_\d+_problem_\d+_sample_\d+_kernel\.py|eval_results\.json|baseline_time_eager\.json"
)


@pytest.fixture(scope="module")
def written(hostile_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("written")
    run = exporting(hostile_store, folder)
    for form in FORMATS:
        run(form)
    yield folder


@pytest.mark.ci
def test_no_name_of_a_file_comes_from_a_text(written: Path) -> None:
    names = [path.name for path in written.rglob("*")]
    assert len(names) > len(FORMATS) and all(NAMES.fullmatch(name) for name in names)


def test_json_lines_are_for_strict_readers_and_hold_the_texts(
    hostile_store: Store, written: Path, tmp_path: Path
) -> None:
    for form in ("jsonl", "pairs"):
        text = (written / f"out-{form}").read_bytes()
        assert text.isascii() and not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", text)
        assert len(text.splitlines()) == len(TEXTS)
    load_dataset("json", data_files=str(written / "out-pairs"), cache_dir=str(tmp_path))
    lines = [json.loads(line) for line in (written / "out-jsonl").read_text().splitlines()]
    for line, text in zip(lines, TEXTS, strict=True):
        stored = hostile_store.load_attempt(line["id"])
        assert stored.response is not None and stored.source is not None
        assert line["responses"][1]["response"]["text"] == whole(stored.response.text or "")
        assert line["extraction"]["candidate"]["source"] == whole(stored.source)
        assert whole(text) in line["extraction"]["candidate"]["source"]


def test_parquet_holds_the_texts(hostile_store: Store, written: Path, tmp_path: Path) -> None:
    rows = parquet.read_table(written / "out-parquet").to_pylist()
    loaded = load_dataset(str(written / "out-huggingface"), split="train", cache_dir=str(tmp_path))
    assert len(rows) == len(loaded) == len(TEXTS)
    for row in rows:
        text = hostile_store.load_attempt(row["attempt_id"]).response.text  # type: ignore[union-attr]
        assert row["response"] == whole(text or "")


def test_the_card_shows_texts_and_runs_none(written: Path) -> None:
    card = (written / "out-huggingface" / "README.md").read_text(encoding="utf-8")
    head, text = card.split("---\n")[1:3]
    assert "OWNED" not in head and "example.invalid" not in head
    body = text[: text.index("## Columns")]
    assert "OWNED" in body
    for line in body.splitlines():
        if "OWNED" in line or "example.invalid" in line:
            assert line.startswith("- ") and not re.search(r"[<>\[\]`]", line), line
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", card)


def test_kernelbench_keeps_hostile_names_inside_json(hostile_store: Store, tmp_path: Path) -> None:
    export = gather(hostile_store, Filters(run="1"))
    (tmp_path / "out").mkdir()
    formats.write_kernelbench(export, tmp_path / "out")
    assert all(NAMES.fullmatch(path.name) for path in (tmp_path / "out").rglob("*"))
    times = json.loads((tmp_path / "out" / "level1" / "baseline_time_eager.json").read_text())
    assert list(times["level1"]) == [f"0_{TEXTS[0]}.py"]
