"""Directories of reference files become suites: whole ones or none."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.errors import UsageError
from kernelproof.problems import open_suite
from kernelproof.problems.importing.drafts import split_name
from tests.problems.importing.command import held, imports, refusal
from tests.problems.trees import checkout, scale_source, write


def test_a_kernelbench_checkout_is_copied_byte_for_byte(tmp_path: Path) -> None:
    root = checkout(tmp_path / "theirs")
    odd = write(root / "KernelBench" / "level3" / "2_Odd.py", "")
    odd.write_bytes(scale_source(summary="Grüße.").replace("\n", "\r\n").encode())
    result = imports(root, tmp_path / "mine")
    assert result.exit_code == 0
    assert "8 problems (4 in level1, 2 in level2, 2 in level3)" in result.stdout
    for file in (root / "KernelBench").glob("level*/*.py"):
        assert (tmp_path / "mine" / file.parent.name / file.name).read_bytes() == file.read_bytes()
    suite = open_suite(tmp_path / "mine")
    assert (suite.broken, len(suite.problems())) == ([], 8)
    theirs = {problem.id: problem.sha256 for problem in open_suite(root).problems()}
    assert {problem.id: problem.sha256 for problem in suite.problems()} == theirs


def test_a_flat_directory_stays_flat_or_gets_a_level(tmp_path: Path) -> None:
    write(tmp_path / "theirs" / "3_scale.py")
    write(tmp_path / "theirs" / "bias (new).py")
    assert imports(tmp_path / "theirs", tmp_path / "flat").exit_code == 0
    assert held(tmp_path / "flat") == {"3_scale.py", "bias_new_.py"}
    assert imports(tmp_path / "theirs", tmp_path / "leveled", "--level", "2").exit_code == 0
    assert open_suite(tmp_path / "leveled").ids == ["level2/3", "level2/bias_new_"]


def test_as_json_each_problem_has_its_file(tmp_path: Path) -> None:
    write(tmp_path / "theirs" / "level4" / "9_scale.py")
    shown = json.loads(imports(tmp_path / "theirs", tmp_path / "mine", "--json").stdout)
    (problem,) = shown["problems"]
    assert (problem["id"], problem["path"]) == ("level4/9", str(tmp_path / "mine" / "level4" / "9_scale.py"))
    assert shown["left_out"] == []


def test_one_broken_file_keeps_all_from_being_written_unless_it_is_left_out(tmp_path: Path) -> None:
    root = checkout(tmp_path / "theirs")
    bad = write(root / "KernelBench" / "level1" / "2_bad.py", "x = 1\n")
    latin = write(root / "KernelBench" / "level2" / "4_latin.py")
    latin.write_bytes(b"# \xe9\n")
    to = tmp_path / "mine"
    said = refusal(root, to)
    assert said.startswith("2 of 9 are no problems, the first: ") and "--skip-broken" in said
    result = imports(root, to, "--skip-broken")
    assert result.exit_code == 0 and "7 problems" in result.stdout
    assert f"left out: {bad}:1: defines no `class Model" in result.stderr
    assert f"left out: {latin} is not UTF-8" in result.stderr


def test_names_that_become_one_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "theirs" / "a b.py")
    write(tmp_path / "theirs" / "a(b.py")
    assert "a_b is also" in refusal(tmp_path / "theirs", tmp_path / "mine")


def test_what_is_there_already_is_not_touched(tmp_path: Path) -> None:
    root = checkout(tmp_path / "theirs")
    write(tmp_path / "mine" / "notes.txt", "keep")
    assert "is there already; give --to a new directory" in refusal(root, tmp_path / "mine")
    (tmp_path / "file").write_text("keep")
    assert "is there already" in refusal(root, tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert imports(root, tmp_path / "empty").exit_code == 0


def test_places_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = checkout(tmp_path / "theirs")
    assert "make it first: mkdir -p" in str(imports(root, tmp_path / "no" / "mine").exception)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert "the current directory, which cannot be replaced" in str(imports(root, Path()).exception)
    assert "does not exist; give a directory" in refusal("nothing", tmp_path / "mine")
    assert "--column is for data sets" in refusal(root, tmp_path / "mine", "--column", "code=x")


def test_a_disk_that_is_full_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    """Files of more than 4 KiB cannot be written by the process: the second one fails."""
    write(tmp_path / "theirs" / "1_small.py")
    write(tmp_path / "theirs" / "2_large.py", scale_source() + "# a long line\n" * 1000)
    code = "from kernelproof.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "problems", "import", "theirs", "--to", "mine"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "kernelproof: mine cannot be written: File too large; nothing was imported\n"
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


@given(st.text(max_size=300))
def test_every_name_is_a_file_name_that_keeps_its_number(text: str) -> None:
    try:
        number, name = split_name(text, "here")
    except UsageError:
        return
    stem = name if number is None else f"{number}_{name}"
    assert "/" not in stem and stem.isprintable() and not stem.startswith(".")
    assert len(f"{stem}.py".encode()) <= 255 or not text.isascii()
    assert split_name(stem, "here") == (number, name)
