"""A judge that gets no artefact builds by itself, and says why in a line. Nothing is built here."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelproof.choices import Role
from kernelproof.db.evaluations import Submitted
from kernelproof.db.queue import WorkerCapabilities
from kernelproof.service.artefacts import open_artefacts
from kernelproof.service.worker import JudgeWorker
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.stop import Stop
from tests.db import samples

KEY = "ab" * 32


def away(root: Path) -> None:
    """The store cannot be reached."""
    shutil.rmtree(root)
    root.write_text("a file where a folder should be")


def is_record(root: Path) -> None:
    """The entry is whole, and is no record of a build."""
    open_artefacts(str(root)).put(KEY, b"[1, 2, 3]\n")


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "gone": (lambda root: (root / "ab" / KEY).unlink(), "is not in the store, or damaged"),
    "cut short": (lambda root: (root / "ab" / KEY).write_bytes(b"{"), "is not in the store, or damaged"),
    "of an older version": (lambda root: (root / "ab" / KEY).write_bytes(b'{"format":1}'), "or damaged"),
    "no record": (is_record, "is not in the store, or damaged"),
    "away": (away, "cannot be used"),
}


@pytest.mark.parametrize(("spoil", "why"), SPOILED.values(), ids=SPOILED)
def test_it_is_built_here(
    tmp_path: Path,
    empty_database: Path,
    spoil: Callable[[Path], object],
    why: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kernelproof.service.worker.STORE_PATIENCE_S", 0.1)
    monkeypatch.setattr("kernelproof.service.worker.AGAIN_S", 0.05)
    root = tmp_path / "artefacts"
    artefacts = open_artefacts(str(root))
    artefacts.put(KEY, b"{}\n")
    spoil(root)
    sent = Submitted(
        problem=samples.problem(), text="text", settings=samples.CPP_SMALL, request_sha256="0" * 64
    )
    backends = (samples.CPP_SMALL.backend,)
    with samples.new_store(tmp_path, empty_database) as store, Engine(cache=tmp_path / "cache") as engine:
        evaluations, queue = store.service.evaluations, store.service.queue
        [stored] = evaluations.submit("c", [sent], most=1)
        [job] = queue.take("b", 1, WorkerCapabilities(Role.BUILD, backends))
        assert queue.finish_build(job.id, job.token, KEY)
        judging = JudgeWorker(store, engine, backends, None, artefacts, threading.Event(), Role.JUDGE)
        [job] = queue.take(judging.owner, 1, judging.capabilities)
        with caplog.at_level(logging.WARNING, "kernelproof.service"):
            assert judging.do(job, Stop()) is True
        result = evaluations.get(stored.id)
        assert result is not None and result.state == "done"
    [line] = [each.getMessage() for each in caplog.records]
    assert f"evaluation {stored.id} is built here" in line and why in line
