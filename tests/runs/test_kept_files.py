"""What runs leave in files: answers in `generated/`, and those that the store cannot take."""

from __future__ import annotations

import re
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernelproof.db.store import open_store
from kernelproof.errors import MachineError, StoreError
from kernelproof.problems import open_suite
from kernelproof.providers import Provider, Question
from kernelproof.providers.recording import ReplayProvider, read_recording
from kernelproof.runs.batch import RunPlan, run_batch
from kernelproof.runs.files import write_attempt
from kernelproof.types import AttemptKey, Response, RunSettings, VerifySettings
from kernelproof.verifier.engine.engine import Engine
from tests.cli import material

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


class Vandal(Provider):
    """Removes the database while it answers."""

    def __init__(self, database: Path) -> None:
        self._database = database

    @property
    def name(self) -> str:
        return "vandal"

    async def ask(self, question: Question) -> Response:
        self._database.unlink()
        body = material.answer("no code")
        return Response(text="no code", raw=body)


def test_it_is_kept_where_the_error_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "db" / "attempts.sqlite"
    settings = RunSettings(model="vandal", template="basic-v1", verify=VerifySettings(backend="cpp"))
    plan = RunPlan(
        settings, Vandal(path), [open_suite(material.problems(tmp_path / "suite")).find("relu")], 1
    )
    with (
        open_store(path) as store,
        Engine(tmp_path / "cache") as engine,
        pytest.raises(StoreError, match="was removed, moved or replaced") as failed,
    ):
        anyio.run(partial(run_batch, [plan], store, engine))
    place = re.search(r"answers that had come are in (\S+)", str(failed.value))
    assert place is not None
    (record,) = read_recording(Path(place[1])).values()
    assert (record.problem, record.sample, record.turn) == ("level1/1", 0, 1)
    assert ReplayProvider(place[1]).turns("level1/1", "cpp", 0) == 1
