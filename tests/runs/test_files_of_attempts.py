"""What runs leave in `generated/`: written below a workspace that is there, and nowhere else."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kernelproof.errors import MachineError
from kernelproof.runs.files import write_attempt
from kernelproof.types import AttemptKey, Response

KEY = AttemptKey(problem_id="level1/1", problem_sha256="0" * 64, sample=2, turn=3)
ANSWER = Response(text="an answer")


def test_the_folders_of_an_attempt_are_made(tmp_path: Path) -> None:
    for _ in range(2):
        folder = write_attempt(tmp_path / "generated", 7, KEY, ANSWER, None, None)
        assert folder == tmp_path / "generated" / "level1" / "1" / "7-sample2-turn3"
        assert [file.name for file in folder.iterdir()] == ["response.md"]


@pytest.mark.parametrize("after", [1, 2, 3, 4])
def test_a_workspace_that_is_removed_meanwhile_is_not_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    workspace, made, make = tmp_path / "workspace", [], Path.mkdir
    workspace.mkdir()

    def noted(path: Path, *arguments: Any, **more: Any) -> None:
        make(path, *arguments, **more)
        made.append(path)
        if len(made) == after:
            shutil.rmtree(workspace)

    monkeypatch.setattr(Path, "mkdir", noted)
    with pytest.raises(MachineError, match="cannot be written"):
        write_attempt(workspace / "generated", 7, KEY, ANSWER, None, None)
    assert len(made) == after and not workspace.exists()
