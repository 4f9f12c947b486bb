"""The contents of each format, read by the tools that it is for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pytest
from datasets import load_dataset
from pyarrow import parquet

from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt
from kernelproof.errors import UsageError
from kernelproof.report.export.columns import FIELDS
from kernelproof.report.export.formats import ATTEMPT, PAIR
from kernelproof.runs.imports import parse_results, read_times
from kernelproof.types import ReproductionFinding
from tests.db import samples
from tests.report.export.conftest import Exported


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_jsonl_holds_all_of_each_attempt(filled: Store, exported: Exported) -> None:
    found = lines(exported("jsonl"))
    assert [line["id"] for line in found] == list(range(1, 9))  # the unfinished one is left out
    for line in found:
        assert line.keys() == ATTEMPT.keys()
        stored = filled.load_attempt(line["id"])
        rest = {key: value for key, value in line.items() if key not in ("format", "counts")}
        assert StoredAttempt.model_validate(rest) == stored
    assert [c["decides"] for line in found for c in line["counts"]] == [False] + [True] * 7
    assert found[6]["counts"][0]["setting"]["numerics"] == "tf32"


def test_parquet_has_the_columns_of_the_view_and_the_texts(filled: Store, exported: Exported) -> None:
    path = exported("parquet")
    assert parquet.read_schema(path).names == [field.name for field in FIELDS]
    rows = pandas.read_parquet(path).set_index("attempt_id")
    import sqlite3

    connection = sqlite3.connect(filled.path)
    view = pandas.read_sql("SELECT * FROM attempts_flat WHERE status IS NOT NULL", connection)
    connection.close()
    view = view.set_index("attempt_id").loc[rows.index]
    same = [name for name in rows.columns if name in view.columns and name not in ("flags", "own_kernel")]
    assert len(same) > 30
    for name in same:
        ours, theirs = rows[name].tolist(), view[name].tolist()
        assert [None if pandas.isna(x) else x for x in ours] == [
            None if pandas.isna(x) else x for x in theirs
        ], name
    assert rows.loc[1, "messages"][0] == {"role": "system", "content": "You write kernels."}
    assert rows.loc[1, "messages"][-1] == {"role": "user", "content": "Rewrite Model."}
    assert rows.loc[2, "source"] == samples.SOURCE and rows.loc[2, "reference"].startswith("class Model")
    assert rows.loc[8, "messages"] is None and rows.loc[8, "kind"] == "verify"


def test_huggingface_is_loaded_by_datasets(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelproof.report.export.formats.SHARD", 3)
    folder = exported("huggingface", "--license", "cc-by-4.0")
    files = sorted(file.name for file in (folder / "data").iterdir())
    assert files == [f"train-0000{number}-of-00003.parquet" for number in range(3)]
    found = load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert found.column_names == [field.name for field in FIELDS]
    assert sorted(found["attempt_id"]) == list(range(1, 9))
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlicense: cc-by-4.0\n") and "vendor:good (6)" in card
    assert all(f"| `{field.name}` |" in card for field in FIELDS)


def test_the_card_is_read_by_hugging_faces_own_library(exported: Exported) -> None:
    from huggingface_hub import DatasetCard

    card = DatasetCard.load(exported("huggingface") / "README.md")
    data = card.data.to_dict()
    assert (data["license"], data["tags"]) == ("unknown", ["code", "gpu-kernels", "kernelproof"])
    assert data["configs"][0]["data_files"] == [{"split": "train", "path": "data/*.parquet"}]


def test_pairs_have_the_reward_that_was_chosen(exported: Exported, tmp_path: Path) -> None:
    found = lines(exported("pairs", "--reward", "correct-and-speedup", "--run", "a"))
    # wrong, correct at 2.0, build error, correct at 0.5; not measured has none
    expected = {1: 0.0, 2: 2.3, 3: 0.0, 4: 0.8}
    assert {line["attempt_id"]: round(line["reward"], 9) for line in found} == expected
    for line in found:
        assert line.keys() == PAIR.keys() and line["reward_formula"] == "correct-and-speedup"
        assert [message["role"] for message in line["prompt"]] == ["system", "user", "assistant", "user"]
        assert samples.SOURCE in line["response"]
    assert "left out: without what the reward" in (tmp_path / "said").read_text()


def test_programs_given_as_files_are_no_pairs(exported: Exported, tmp_path: Path) -> None:
    assert lines(exported("pairs", "--kind", "verify")) == []
    assert "1 attempt left out: without a question" in (tmp_path / "said").read_text()


def test_kernelbench_writes_what_import_reads(exported: Exported) -> None:
    folder = exported("kernelbench", "--model", "good", "--run", "a")
    results = json.loads((folder / "level1" / "eval_results.json").read_text())
    assert list(results) == ["1", "12"]
    entries = [(e["sample_id"], e["compiled"], e["correctness"], e["runtime"]) for e in results["1"]]
    assert entries == [(0, True, True, 0.5), (1, False, False, -1.0)]
    claims, trouble = parse_results(
        "eval_results.json", (folder / "level1" / "eval_results.json").read_bytes()
    )
    assert trouble is None
    assert [(c.problem, c.sample) for c in claims] == [(1, 0), (1, 1), (12, 0)]
    assert read_times(folder / "level1" / "baseline_time_eager.json") == {"level1/1": 1.0, "level1/12": 1.0}
    assert sorted(file.name for file in (folder / "level2").iterdir()) == [
        "baseline_time_eager.json",
        "eval_results.json",
        "level_2_problem_2_sample_0_kernel.py",
    ]
    assert (folder / "level2" / "level_2_problem_2_sample_0_kernel.py").read_text() == samples.SOURCE


def test_kernelbench_holds_one_run_under_one_setting(exported: Exported, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"run 1 \(cpp · small size · Test CPU\), run 2"):
        exported("kernelbench")
    assert list(tmp_path.iterdir()) == []


def test_inspect_logs_have_the_shape_of_inspects_schema(exported: Exported) -> None:
    """test_inspect.py beside this reads them with inspect-ai, where that is installed."""
    folder = exported("inspect")
    logs = {file.name.partition("_")[2]: json.loads(file.read_text()) for file in folder.iterdir()}
    assert sorted(logs) == [f"kernelproof_run-{number}-setting-1.json" for number in (1, 2, 3, 4)]
    log = logs["kernelproof_run-1-setting-1.json"]
    assert (log["version"], log["status"], log["eval"]["model"]) == (2, "success", "vendor:good")
    assert [(s["id"], s["epoch"], s["scores"]["verified"]["value"]) for s in log["samples"]] == [
        *(("level1/1", 1, "C"), ("level1/1", 2, "I"), ("level1/12", 1, "C"), ("level2/2", 1, "C")),
    ]
    score = log["results"]["scores"][0]
    assert (score["scored_samples"], score["metrics"]["accuracy"]["value"]) == (4, 0.75)
    failed = logs["kernelproof_run-2-setting-1.json"]["samples"][0]
    assert "scores" not in failed and failed["error"]["message"] == "because"


def test_a_filter_that_matches_nothing_says_which_values_there_are(exported: Exported) -> None:
    with pytest.raises(UsageError, match=r"vendor:good, vendor:poor"):
        exported("jsonl", "--model", "nobody")


def test_files_are_replaced_and_folders_are_not(exported: Exported, tmp_path: Path) -> None:
    (tmp_path / "out-jsonl").write_text("old")
    exported("jsonl", "--run", "b")
    assert len(lines(tmp_path / "out-jsonl")) == 1
    (tmp_path / "out-inspect").mkdir()
    exported("inspect")  # an empty folder is taken
    with pytest.raises(UsageError, match="is there already"):
        exported("inspect")
    (tmp_path / "out-pairs").mkdir()
    with pytest.raises(UsageError, match="is a directory"):
        exported("pairs")
    assert not [file.name for file in tmp_path.iterdir() if file.name.endswith(".partial")]


@pytest.mark.parametrize("option", [("--reward", "correct"), ("--license", "mit")])
def test_options_of_other_formats_are_refused(exported: Exported, option: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match=f"{option[0]} is for"):
        exported("jsonl", *option)


def test_the_newest_audit_stands_beside_what_was_audited(filled: Store, exported: Exported) -> None:
    judged = filled.load_attempt(4).verdict
    assert judged is not None
    found = samples.reproduction(4, ReproductionFinding.SAME)
    filled.audits.record("2026-01-01T00:00:00.000+00:00", None, judged.id, found)
    rows = pandas.read_parquet(exported("parquet")).set_index("attempt_id")
    assert rows.loc[4, "audit"] == "same" and rows.loc[4, "audited"].startswith("20")
    assert rows["audit"].notna().sum() == 1
