"""Files of users at every door: a pipe is not waited for, a device is not read, and no file is endless."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelproof.errors import KernelproofError
from kernelproof.problems import open_suite, read_problem
from kernelproof.prompting import open_template
from kernelproof.providers.recording import read_recording
from kernelproof.regular_files import LINES_BYTES, TEXT_BYTES, open_regular, read_regular
from kernelproof.runs.bundles.container import Container
from kernelproof.runs.candidates import read_candidates
from kernelproof.runs.config import read_config
from kernelproof.runs.files import read_text
from kernelproof.runs.imports import read_times

ROOT = Path(__file__).parents[1]
DOORS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "program": ("a.py", read_text),
    "problem": ("1_relu.py", read_problem),
    "suite": ("1_relu.py", lambda file: open_suite(file.parent).find("relu")),
    "lines": ("a.jsonl", lambda file: read_candidates(file, open_suite(), None)),
    "recording": ("r.jsonl", read_recording),
    "configuration": ("batch.toml", read_config),
    "times": ("times.json", read_times),
    "bundle": ("x.bundle", Container),
}


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(LINES_BYTES + 1)


PLANTS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "huge": huge,
}


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.timeout(20)
def test_what_never_ends_is_refused_at_once(tmp_path: Path, door: str, plant: str) -> None:
    name, read = DOORS[door]
    PLANTS[plant](tmp_path / name)
    with pytest.raises(KernelproofError) as caught:
        read(tmp_path / name)
    assert str(tmp_path) in str(caught.value)


def test_a_template_is_read_with_a_bound(tmp_path: Path) -> None:
    huge(tmp_path / "template.toml")
    with pytest.raises(KernelproofError, match=r"template\.toml cannot be read: .*more than 64 MiB"):
        open_template(f"{tmp_path}/")


def test_the_bound(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"x" * 100)
    assert read_regular(file, 100) == b"x" * 100
    with pytest.raises(OSError, match="it holds more than 0 MiB"):
        read_regular(file, 99)
    assert TEXT_BYTES < LINES_BYTES


def test_a_path_that_leads_elsewhere_once_it_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, ours = tmp_path / "a.py", tmp_path / "b.py"
    os.mkfifo(file)
    ours.touch()
    looked = ours.stat()
    monkeypatch.setattr(Path, "stat", lambda *_, **__: looked)  # a pipe came meanwhile
    with pytest.raises(OSError, match="it is a pipe, no regular file"):
        open_regular(file)


def test_a_pipe_of_the_shells_own_is_read() -> None:
    """`kernelproof verify <(git show HEAD:a.py)`."""
    ours, theirs = os.pipe()
    with os.fdopen(theirs, "wb") as file:
        file.write(b"import torch\n")
    try:
        assert read_text(Path(f"/dev/fd/{ours}")) == "import torch\n"
    finally:
        os.close(ours)


def test_users_files_are_read_by_nothing_else() -> None:
    """The rooms that read files of users use the shared reader. `examples` and pages are our own files."""
    ours = {"prompting/templates.py": 1, "report/web/rendering.py": 1, "verifier/engine/core_sharing.py": 1}
    read = {}
    for room in (
        "api",
        "cli",
        "verifier/engine",
        "extraction",
        "problems",
        "prompting",
        "providers",
        "report",
        "runs",
    ):
        for file in (ROOT / "pipeline" / room).rglob("*.py"):
            text = file.read_text()
            if count := text.count(".read_text(") + text.count(".read_bytes("):
                read[str(file.relative_to(ROOT / "pipeline"))] = count
    assert read == ours
