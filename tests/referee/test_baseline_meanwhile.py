"""The baseline draws its weights beside the reference where that takes long, and is begun once."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernelproof.problems import open_suite
from kernelproof.types import VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.referee import sides
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.session import LONG_SECONDS, Session, Tools, WarmState


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What baselines' processes, which are not there, are told."""
    found: list[str] = []
    process = SimpleNamespace(close=lambda: found.append("close"))

    def start(*_: Any) -> Any:
        found.append("start")
        return process

    monkeypatch.setattr(sides, "start", start)
    monkeypatch.setattr(sides, "construct_baseline", lambda *_: found.append("construct"))
    monkeypatch.setattr(sides, "give_baseline", lambda *_: found.append("give"))
    return found


@pytest.mark.parametrize("seconds", [0.0, 2 * LONG_SECONDS])
def test_it_begins_beside_what_takes_long(told: list[str], seconds: float, tmp_path: Path) -> None:
    problem = open_suite().find("level1/1")
    settings = VerifySettings(backend="cpp", size="small")
    request = VerifyRequest(problem=problem, source="", settings=settings, device="cpu")
    tools = Tools(cast("Any", None), lambda _: None, tmp_path, cast("Any", None), WarmState())
    session = Session(request, Ledger(request), tools)
    session.loaded = LoadedProblem(problem, "small")
    with session.baseline_meanwhile():
        time.sleep(seconds)
    assert told == (["start", "construct"] if seconds else [])
    session.pristine = cast("Any", SimpleNamespace(specs={}))
    session.start_baseline()
    session.ready.result(60)
    assert told == ["start", "construct", "give"]
    session.close()
    assert told[-1] == "close"
