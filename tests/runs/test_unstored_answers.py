"""An answer that came, and that the store cannot take, is kept in a recording, and the error says where."""

from __future__ import annotations

import re
import tempfile
from functools import partial
from pathlib import Path

import anyio
import pytest

from kernelproof.db.store import open_store
from kernelproof.errors import StoreError
from kernelproof.problems import open_suite
from kernelproof.providers import Provider, Question
from kernelproof.providers.recording import ReplayProvider, read_recording
from kernelproof.runs.batch import RunPlan, run_batch
from kernelproof.types import Response, RunSettings, VerifySettings
from kernelproof.verifier.engine.engine import Engine
from tests.cli import material


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
