"""Rows of local data sets become problems, as those of ScalingIntelligence/KernelBench do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelproof.problems import open_suite
from tests.problems.importing.command import imports, refusal
from tests.problems.trees import scale_source

datasets: Any = pytest.importorskip("datasets", reason="make test installs datasets")


def row(level: Any, number: Any, name: Any, code: Any = None) -> dict[str, Any]:
    """One row with KernelBench's columns."""
    source = scale_source(summary=f"Problem {number}.") if code is None else code
    return {"code": source, "level": level, "name": name, "problem_id": number}


def parquet(path: Path, *rows: dict[str, Any]) -> Path:
    """A parquet file with these rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    datasets.Dataset.from_list(list(rows)).to_parquet(str(path))
    return path


@pytest.fixture
def kernelbench(tmp_path: Path) -> Path:
    """A directory laid out as the data set on the Hub: a split for each level."""
    folder = tmp_path / "theirs"
    parquet(
        folder / "data" / "level_1-00000-of-00001.parquet", row(1, 1, "1_Scale_"), row(1, 23, "23_Softmax")
    )
    parquet(folder / "data" / "level_2-00000-of-00001.parquet", row(2, 1, "1_Conv (a/b)"))
    return folder


def test_a_directory_as_on_the_hub(kernelbench: Path, tmp_path: Path) -> None:
    result = imports(kernelbench, tmp_path / "mine")
    assert result.exit_code == 0, result.output
    assert "3 problems (2 in level1, 1 in level2)" in result.stdout
    suite = open_suite(tmp_path / "mine")
    assert [place.path.name for place in suite.places] == ["1_Scale_.py", "23_Softmax.py", "1_Conv_a_b_.py"]
    assert suite.find("level1/23").source == scale_source(summary="Problem 23.")


def test_one_split_of_it(kernelbench: Path, tmp_path: Path) -> None:
    assert imports(kernelbench, tmp_path / "mine", "--split", "level_2").exit_code == 0
    assert open_suite(tmp_path / "mine").ids == ["level2/1"]
    said = refusal(kernelbench, tmp_path / "other", "--split", "level_3")
    assert said.endswith("has no split 'level_3'; it has 'level_1', 'level_2'")


def test_a_data_set_that_was_saved_to_disk(tmp_path: Path) -> None:
    parts = {"train": datasets.Dataset.from_list([row("level_3", "7", "gate")])}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "whole"))
    parts["train"].save_to_disk(str(tmp_path / "part"))
    for source in ("whole", "part"):
        assert imports(tmp_path / source, tmp_path / f"from_{source}").exit_code == 0
        assert (tmp_path / f"from_{source}" / "level3" / "7_gate.py").is_file()


def test_other_names_of_columns(tmp_path: Path) -> None:
    rows = ({"reference": scale_source(), "title": "My scale", "hardness": 2.0, "text": "x"},)
    file = parquet(tmp_path / "theirs.parquet", *rows)
    to = tmp_path / "mine"
    said = refusal(file, to)
    assert said.startswith("there is no column 'code', but 'reference', 'title', 'hardness', 'text'; ")
    assert said.endswith("--column code=COLUMN")
    named = ("--column", "code=reference", "--column", "name=title")
    assert "there is no column 'number'" in refusal(file, to, *named, "--column", "number=number")
    assert imports(file, to, *named, "--column", "level=hardness").exit_code == 0
    assert open_suite(to).ids == ["level2/My_scale"]
    assert imports(file, tmp_path / "flat", *named).exit_code == 0
    assert open_suite(tmp_path / "flat").ids == ["My_scale"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row(1, 2, "2_bad", "def f(:"), "row 1 of split train:1: does not parse as Python"),
        (row(1, 2, "2_bad", "x = 1"), "row 1 of split train:1: defines no `class Model"),
        (row(1, 2, "2_bad", "\x00\x1b[2J"), "row 1 of split train:1: does not parse"),
        (row(1, 2, "2_bad", " "), "row 1 of split train: column 'code' holds no text"),
        (row(1, 2, "\x1b[2J/"), ""),
        (row(1, 2, "///"), "row 1 of split train: '///' gives no name"),
        (row(None, 2, "2_bad"), "row 1 of split train has no level, and 1 other have one"),
        (row(1, 1, "other"), "row 1 of split train: level1/1 is also row 0 of split train"),
    ],
)
def test_one_bad_row_and_nothing_is_written(bad: dict[str, Any], said: str, tmp_path: Path) -> None:
    file = parquet(tmp_path / "theirs.parquet", row(1, 1, "1_good"), bad)
    if not said:  # strange characters are no reason to refuse a row
        assert imports(file, tmp_path / "mine").exit_code == 0
        assert (tmp_path / "mine" / "level1" / "2_2J_.py").is_file()
        return
    assert said in refusal(file, tmp_path / "mine")
    if "level, and" not in said:
        assert "1 problem (1 in level1)" in imports(file, tmp_path / "mine", "--skip-broken").stdout


def test_values_that_are_no_numbers(tmp_path: Path) -> None:
    file = parquet(tmp_path / "theirs.parquet", row("hard", "1", "a"))
    assert "column 'level' holds 'hard', which is no number" in refusal(file, tmp_path / "mine")


def test_files_that_are_no_data_set(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_text("no parquet")
    assert "bad.parquet cannot be read as a data set" in refusal(tmp_path / "bad.parquet", tmp_path / "mine")


def test_a_hub_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from kernelproof.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "problems", "import", "nobody/nothing", "--to", str(tmp_path / "mine")],
        env={
            "PATH": "/usr/bin:/bin",
            "HF_HUB_OFFLINE": "1",
            "HOME": str(tmp_path),
            "PYTHONPATH": ":".join(sys.path),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    wanted = "kernelproof: the Hugging Face Hub cannot be reached for nobody/nothing; try again later\n"
    assert (done.returncode, done.stderr) == (3, wanted)
    assert not (tmp_path / "mine").exists()


@pytest.mark.ci
def test_reading_a_data_set_imports_no_torch(kernelbench: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from kernelproof.cli.problems import problems_app;"
        " problems_app(['import', *sys.argv[1:]], standalone_mode=False);"
        " sys.exit('torch' in sys.modules or 'datasets' not in sys.modules)"
    )
    words = [str(kernelbench), "--to", str(tmp_path / "mine")]
    assert subprocess.run([sys.executable, "-c", code, *words], timeout=120, check=False).returncode == 0
