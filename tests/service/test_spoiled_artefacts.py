"""A judge whose artefact is spoiled or gone sends the evaluation back to builders. Nothing is built here."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kernelproof.choices import Role
from kernelproof.db.evaluation_records import Submitted, Wanted
from kernelproof.engine.engine import Engine
from kernelproof.engine.stop import Stop
from kernelproof.service.artefact_places import open_artefacts
from kernelproof.service.worker import Judging
from tests.db import samples

SPOILED = {
    "gone": None,
    "cut short": b"{",
    "no record": b"[1, 2, 3]",
    "not its hash": b'{"format": 1}',
}


@pytest.mark.parametrize("content", SPOILED.values(), ids=SPOILED)
def test_it_is_built_again(tmp_path: Path, empty_database: Path, content: bytes | None) -> None:
    artefacts = open_artefacts(str(tmp_path / "artefacts"))
    sha256 = artefacts.put(b"[1, 2, 3]")
    path = tmp_path / "artefacts" / sha256[:2] / sha256
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    sent = Submitted(
        problem=samples.problem(), text="text", settings=samples.CPP_SMALL, request_sha256="0" * 64
    )
    backends = (samples.CPP_SMALL.backend,)
    with samples.new_store(tmp_path, empty_database) as store, Engine(cache=tmp_path / "cache") as engine:
        evaluations, takings = store.service.evaluations, store.service.takings
        [stored] = evaluations.submit("c", [sent], most=1)
        [taken] = takings.take("b", 1, Wanted(Role.BUILD, backends))
        store.service.artefacts.remember("0" * 64, sha256, timed_out=False)
        assert takings.built(taken.id, taken.token, sha256)
        judging = Judging(store, engine, backends, None, artefacts, threading.Event(), Role.JUDGE)
        [taken] = takings.take(judging.owner, 1, judging.wanted)
        assert judging.do(taken, Stop()) is True
        found = evaluations.get(stored.id)
        assert found is not None and (found.state, found.rebuilds, found.artefact) == ("queued", 1, None)
        assert store.service.artefacts.known("0" * 64) is None, "a builder would publish the same again"
        assert store.latest_attempt_id() is None
