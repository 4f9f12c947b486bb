"""Where the results of timed calls go, when memory holds one set of inputs only.

A candidate that knows the place writes there at once, and leaves out the copy: on a CPU it hid as much work,
and claimed 39 times the speed of its twin.
"""

from __future__ import annotations

import socket
from collections import defaultdict
from pathlib import Path

import pytest

from kernelproof.problems import read_problem
from kernelproof.types import Status, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.build import learn_toolchain
from kernelproof.verifier.referee.session import Tools, WarmState
from kernelproof.verifier.referee.verdict import verify
from kernelproof.verifier.workers import shared_memory
from kernelproof.verifier.workers.shared_memory import LEAST_PLACES, SharedSlot
from tests.referee.doubles import apart, serve_sabotaged, start_doubles

HERE = Path(__file__).parents[1] / "sabotaged"


def serve(sock: socket.socket) -> None:
    serve_sabotaged(sock, lambda _, answer: [answer])


def test_a_single_set_of_inputs_has_several_places_for_its_results(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_doubles(monkeypatch, serve)
    monkeypatch.setattr(shared_memory, "CPU_BUDGET", 1)
    poison, places = SharedSlot.poison, defaultdict[int, set[int]](set)

    def poisoned(slot: SharedSlot) -> None:
        places[slot.views[0].data_ptr()].add(slot.outputs[0].data_ptr())
        poison(slot)

    monkeypatch.setattr(SharedSlot, "poison", poisoned)
    tools = Tools(lambda _: None, lambda _: None, cache, learn_toolchain(cache), WarmState())  # type: ignore[arg-type, return-value]
    settings = {"backend": "cpp", "own_kernel": False, "trials": 1, "threads": 1, "rigor": "quick"}
    chosen = VerifySettings.model_validate(settings | {"measure_seconds": 0.3, "target_half_width": 0.001})
    problem, source = read_problem(HERE / "problem.py"), (HERE / "honest.py").read_text()
    request = VerifyRequest(problem=problem, source=source, settings=chosen, device="cpu")
    with apart(tmp_path, monkeypatch):
        verdict = verify(request, tools)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert verdict.measurement is not None and verdict.measurement.slots == 1
    assert max(map(len, places.values())) == LEAST_PLACES
