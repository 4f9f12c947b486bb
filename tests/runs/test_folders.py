"""A stranger's folder: what lies in it is read, and nothing else on the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelproof.errors import UsageError
from kernelproof.problems import Suite, open_suite
from kernelproof.runs.candidates import read_candidates
from kernelproof.runs.files import Folder, LeftOut, read_text
from kernelproof.runs.imports import read_import
from tests.cli import material

SECRET = material.right() + "PASSWORD = 'hunter2'\n"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """level1/1 relu, level1/2 sines."""
    return open_suite(material.problems(tmp_path / "problems"))


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder with one good program, beside a private file."""
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "level1_1_good.py").write_text(material.right())
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "relu_secret.py").write_text(SECRET)
    return folder


def everything(given: Path, suite: Suite, *, follow_links: bool = False) -> tuple[dict[str, str], list[str]]:
    """Ids and texts, and what was said, which is the same for `verify` and `import`."""
    notes: list[str] = []
    verified = read_candidates(given, suite, None, follow_links=follow_links, notes=notes)
    imported = read_import(given, suite, None, follow_links=follow_links)
    texts = {one.id: one.response.text or "" for one in verified}
    assert texts == {one.id: one.response.text or "" for one in imported.candidates}
    assert notes == list(imported.notes)
    return texts, notes


def test_a_link_out_of_the_folder_is_named_and_not_read(given: Path, suite: Suite) -> None:
    secret = given.parent / "private" / "relu_secret.py"
    (given / "level1_1_link.py").symlink_to(secret)
    (given / "level1_1_inside.py").symlink_to("level1_1_good.py")
    (given / "relu").symlink_to(secret.parent)
    texts, notes = everything(given, suite)
    assert texts == dict.fromkeys(("level1_1_good.py", "level1_1_inside.py"), material.right())
    assert notes == [
        f"1 file left out (a link out of the folder, to {secret}; --follow-links reads it): level1_1_link.py",
        f"1 file left out (a link out of the folder, to {secret.parent}; --follow-links reads it): relu",
    ]
    texts, notes = everything(given, suite, follow_links=True)
    assert texts["level1_1_link.py"] == texts["relu/relu_secret.py"] == SECRET and notes == []
    with pytest.raises(UsageError, match=r"level1_1_link\.py: a link out of the folder"):
        read_candidates(given, suite, None)


def test_results_behind_a_link_are_not_read(given: Path, suite: Suite) -> None:
    (given.parent / "private" / "x.json").write_text('{"1": {"correctness": true, "runtime": 1}}')
    (given / "eval_results.json").symlink_to(given.parent / "private" / "x.json")
    (given / "level_1_problem_1_sample_0_kernel.py").write_text(material.right())
    found = read_import(given, suite, None)
    assert [one.reported.has_claim for one in found.candidates if one.reported] == [False, False]
    assert len(found.notes) == 1 and "eval_results.json: a link out of the folder" in found.notes[0]


def test_nothing_but_links_out(given: Path, suite: Suite) -> None:
    (given / "level1_1_good.py").unlink()
    (given / "level1_1_link.py").symlink_to(given.parent / "private" / "relu_secret.py")
    for read in (read_candidates, read_import):
        with pytest.raises(UsageError, match=r"1 candidate cannot be used .*\n.*--follow-links reads it"):
            read(given, suite, None)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("follow_links", [False, True])
def test_pipes_devices_loops_and_broken_links(given: Path, suite: Suite, follow_links: bool) -> None:
    os.mkfifo(given / "pipe")
    (given / "level1_1_pipe.py").symlink_to("pipe")
    (given / "level1_1_zero.py").symlink_to("/dev/zero")
    (given / "level1_1_gone.py").symlink_to("gone.py")
    (given / "level1_1_loop.py").symlink_to("level1_1_loop.py")
    (given / "again").symlink_to(".")
    with (given / "level1_1_huge.py").open("wb") as file:
        file.truncate(10 * 2**30)
    texts, notes = everything(given, suite, follow_links=follow_links)
    assert texts == {"level1_1_good.py": material.right()}
    left_out = sorted(note.rpartition(": ")[2] for note in notes)
    assert left_out == [f"level1_1_{name}.py" for name in ("gone", "huge", "loop", "pipe", "zero")]
    assert any("(it is a pipe, no regular file)" in note for note in notes)
    assert any("(it holds more than 64 MiB)" in note for note in notes)


def test_a_folder_that_is_swapped_for_a_link_meanwhile(given: Path) -> None:
    """What counts is where the open file lies, not where the path led when it was listed."""
    (given / "relu").mkdir()
    (given / "relu" / "relu_secret.py").write_text(material.right())
    folder = Folder(given)
    files = folder.files(lambda name: name.endswith(".py"))
    assert len(files) == 2
    (given / "relu").rename(given / "before")
    (given / "relu").symlink_to(given.parent / "private")
    with pytest.raises(LeftOut, match="a link out of the folder"):
        folder.text(given / "relu" / "relu_secret.py")


def test_a_hugging_face_cache(tmp_path: Path, suite: Suite) -> None:
    cache = tmp_path / "hub" / "datasets--somebody--kernels"
    (cache / "blobs").mkdir(parents=True)
    (cache / "blobs" / "0a1b").write_text(material.right())
    other = tmp_path / "hub" / "models--other--private" / "blobs"
    other.mkdir(parents=True)
    (other / "2c3d").write_text(SECRET)
    revision = cache / "snapshots" / "4e5f" / "relu"
    revision.mkdir(parents=True)
    (revision / "a.py").symlink_to("../../../blobs/0a1b")
    (revision / "b.py").symlink_to(other / "2c3d")
    texts, notes = everything(revision.parent, suite)
    assert texts == {"relu/a.py": material.right()}
    assert len(notes) == 1 and f"a link out of the folder, to {other / '2c3d'}" in notes[0]


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
STAND_INS: dict[str, tuple[str | bytes, str]] = {
    "a link written as text": ("../runs/codex/level_1/problem_1.py", "only a path"),
    "with an end of line": ("good.py\r\n", "only a path"),
    "a blob": ("../../blobs/4d7a2146", "only a path"),
    "git-annex": ("/annex/objects/SHA256E-s3--4d7a.py", "only a path"),
    "Git LFS": (POINTER, "git lfs pull"),
    "UTF-16": ("import torch\n".encode("utf-16"), "it is not a text file in UTF-8"),
}


@pytest.mark.parametrize("name", STAND_INS)
def test_a_file_that_holds_no_program_accuses_nobody(given: Path, suite: Suite, name: str) -> None:
    text, why = STAND_INS[name]
    (given / "level1_1_link.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    texts, notes = everything(given, suite)
    assert set(texts) == {"level1_1_good.py"}
    assert len(notes) == 1 and why in notes[0] and "level1_1_link.py" in notes[0]
    with pytest.raises(UsageError, match=why.removeprefix("it ")):
        read_text(given / "level1_1_link.py")


@pytest.mark.parametrize("text", ["I wrote it to kernel.py", "", "no", "import torch", "See runs/a.py."])
def test_prose_is_no_path(given: Path, suite: Suite, text: str) -> None:
    (given / "level1_1_answer.txt").write_text(text)
    texts, notes = everything(given, suite)
    assert texts["level1_1_answer.txt"] == text and notes == []
