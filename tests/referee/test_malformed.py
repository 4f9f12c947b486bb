"""Ten thousand malformed messages: the referee neither hangs nor crashes, and never believes a wrong result.

Most are read by `Contestant.ask` and by what reads its replies; some hundreds of verifications run whole,
with a real runner whose answers are bent; a few real candidates write garbage from inside their sandbox.
"""

from __future__ import annotations

import contextlib
import json
import math
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kernelproof.problems import read_problem
from kernelproof.types import Build, BuildRequest, BuildState, Status, Verification, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.build import Builder, learn_toolchain
from kernelproof.verifier.contestant import loop, wire
from kernelproof.verifier.referee.checks.trials import check_form
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.provenance import reports
from kernelproof.verifier.referee.provenance.origins import Evidence
from kernelproof.verifier.referee.session import Tools, WarmState
from kernelproof.verifier.referee.timing import clock
from kernelproof.verifier.referee.verdict import verify
from kernelproof.verifier.status_rules import Ended
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone
from tests.referee.court import Court
from tests.referee.doubles import apart, serve_sabotaged, start_doubles
from tests.referee.garbage import LEAF, Change, bent, broken, changes, encoded, frame, messages

HERE = Path(__file__).parent / "sabotaged"
MOST_S = 30.0
"""Seconds that one conversation may take: its own limits are below one second."""


DOUBLE = {"output": {"structure": "tensor", "leaves": [LEAF | {"dtype": "float64"}]}, "copied": True}
"""An answer whose dtype alone is wrong."""
ERROR = {"error": {"kind": "exception", "type": "RuntimeError", "message": "no", "traceback": "line 1"}}
EACH = [frame(encoded(message)) for message in (ERROR, DOUBLE, {})]
"""Answers that are not left to chance: one for each fate of a message that can be read."""


def examples(count: int) -> settings:
    """So many, however long they take; none is kept, since the messages are large."""
    return settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with apart(tmp_path, monkeypatch):
        yield


def refuse(request: BuildRequest) -> Build:
    """A build service whose builds all fail."""
    return Build(key="0" * 64, state=BuildState.ERROR, name=request.name, log="error: no such thing")


def request_for(name: str, source: str, **changes: Any) -> VerifyRequest:
    chosen = {
        "backend": "cpp",
        "own_kernel": False,
        "trials": 1,
        "measure": False,
        "threads": 1,
        "load_seconds": 3.0,
        "call_seconds": 0.4,
        "measure_seconds": 0.05,
        "target_half_width": 0.5,
    }
    verify = VerifySettings.model_validate({**chosen, **changes})
    return VerifyRequest(problem=read_problem(HERE / name), source=source, settings=verify, device="cpu")


REQUEST = request_for("problem.py", "")


def read_everything(reply: dict[str, Any]) -> str:
    """What the referee's readers make of a reply: no exception but `Ended`, and nothing unstorable."""
    ledger = Ledger(REQUEST)
    times = clock.believable_times(reply.get("ms"), 3)
    assert all(math.isnan(t) or clock.SHORTEST_MS <= t <= clock.LONGEST_MS for t in times)
    reports.read_report(reply, [], Evidence()).kernels.model_dump_json()
    try:
        check_form(reply, loop.describe(torch.zeros(4, 3)), ledger)
        status, reason = Status.CORRECT, ""
    except Ended as ended:
        status, reason = ended.status, ended.reason
    verdict = ledger.close(status, reason)
    assert Verification.model_validate_json(verdict.model_dump_json()) == verdict
    return status.value


class Tensor(torch.Tensor):
    """Not torch's, but of its name."""


@pytest.mark.parametrize(
    ("mine", "wanted"),
    [({"1": torch.zeros(2)}, {1: torch.zeros(2)}), (Tensor(torch.zeros(2)), torch.zeros(2))],
    ids=["a key of another type", "a type of the same name"],
)
def test_another_form_is_not_the_same(mine: Any, wanted: Any) -> None:
    found = loop.describe(mine)
    assert found.as_json() != loop.describe(wanted).as_json()


def converse(frames: list[bytes], patch: pytest.MonkeyPatch) -> Counter[str]:
    """Asks until the contestant is gone; what came of each question."""

    def serve(sock: socket.socket) -> None:
        for piece in frames:
            sock.sendall(piece)
        sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError, wire.WireError):
            for _ in frames:  # until each question has come: answers are lost where a question finds nobody
                wire.receive(sock)

    start_doubles(patch, serve)
    seen: Counter[str] = Counter()
    once = iter([{"places": [[{}]]}])
    answers = {"places": lambda _: next(once, None)}
    began = time.monotonic()
    with Contestant(refuse, memory_bytes=1 << 30) as contestant:
        for _ in range(len(frames) + 1):
            try:
                reply = contestant.ask({"op": "time"}, seconds=0.5, answers=answers)
                seen[read_everything(reply)] += 1
            except ContestantFailed as failed:
                assert all(
                    isinstance(t, str) for t in (failed.kind, failed.type, failed.message, failed.traceback)
                )
                seen["failed"] += 1
            except ContestantGone as gone:
                seen["broke the protocol" if "broke the protocol" in str(gone) else "gone"] += 1
                break
    assert time.monotonic() - began < MOST_S
    assert seen["gone"] + seen["broke the protocol"] == 1
    return seen


@pytest.mark.parametrize(
    "wanted",
    [
        200,
        pytest.param(1_000, marks=pytest.mark.ci),
        pytest.param(10_000, marks=pytest.mark.slow),
    ],
)
def test_thousands_of_malformed_messages_are_read_or_refused(
    wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Counter[str] = Counter()
    sent = 0

    @examples(wanted * 95 // 1000)
    @given(st.lists(messages.map(encoded).map(frame), min_size=10, max_size=10), broken)
    @example(EACH, b"")
    @example(EACH, frame(b"[]"))
    def conversations(replies: list[bytes], last: bytes) -> None:
        nonlocal sent
        sent += len(replies) + 1
        seen.update(converse([*replies, last], monkeypatch))

    conversations()
    assert sent >= wanted, sent
    assert {"failed", "gone", "broke the protocol", "wrong_shape", "wrong_dtype"} <= set(seen)


@dataclass
class Plan:
    """How a runner's answers are bent: one way an answer, over and over, from the first request of a kind."""

    ways: list[Way]
    first: str = "load"
    sent: int = 0
    _begun: bool = False

    def rewrite(self, request: dict[str, Any], answer: bytes) -> list[bytes | None]:
        """What is sent in place of an answer."""
        self._begun = self._begun or request.get("op") == self.first
        if not self._begun:
            return [answer]
        way = self.ways[self.sent % len(self.ways)]
        self.sent += 1
        return way(answer)


Way = Callable[[bytes], list[bytes | None]]


def bending(some: list[Change]) -> Way:
    return lambda answer: [frame(encoded(bent(json.loads(answer[4:]), some)))]


def doubling(some: list[Change]) -> Way:
    """Another answer goes first: what follows answers the question before."""
    return lambda answer: [frame(encoded(bent(json.loads(answer[4:]), some))), answer]


def replacing(*pieces: bytes | None) -> Way:
    return lambda _: list(pieces)


def leaving(answer: bytes) -> list[bytes | None]:
    return [answer]


def impossible(answer: bytes) -> list[bytes | None]:
    """Times below zero; what has no times stays."""
    told = json.loads(answer[4:])
    if "ms" in told:
        told["ms"] = [-1.0] * len(told["ms"])
    return [frame(encoded(told))]


ways = (
    st.just(leaving)
    | changes.map(bending)
    | changes.map(bending)
    | changes.map(doubling)
    | messages.map(encoded).map(frame).map(replacing)
    | broken.map(lambda piece: replacing(piece, None))
)


@pytest.fixture(scope="module")
def tools(cache: Path) -> Tools:
    return Tools(refuse, lambda stage: None, cache, learn_toolchain(cache), WarmState())


def judged(plan: Plan, request: VerifyRequest, tools: Tools, patch: pytest.MonkeyPatch) -> Verification:
    """A whole verification, the candidate's answers bent as planned."""
    started = 0

    def serve(sock: socket.socket) -> None:
        nonlocal started
        started += 1
        first = started % 2  # candidate and baseline start in turns
        serve_sabotaged(sock, plan.rewrite if first or not request.settings.measure else lambda _, a: [a])

    start_doubles(patch, serve)
    began = time.monotonic()
    verdict = verify(request, tools)
    assert time.monotonic() - began < 2 * MOST_S
    return verdict


def is_sound(verdict: Verification) -> bool:
    """Whether a verdict blames no bug of ours, and can be stored."""
    assert "a bug in the referee" not in verdict.reason, verdict.details
    assert verdict.status is not Status.INFRASTRUCTURE_ERROR, verdict.reason
    return Verification.model_validate_json(verdict.model_dump_json()) == verdict


@pytest.mark.parametrize(
    ("measure", "count"),
    [
        pytest.param(False, 20, id="some tried"),
        pytest.param(False, 120, id="tried", marks=pytest.mark.ci),
        pytest.param(True, 10, id="timed", marks=pytest.mark.slow),
    ],
)
def test_bent_answers_cost_no_more_than_the_verdict(
    measure: bool, count: int, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (HERE / "honest.py").read_text()
    request = request_for("problem.py", source, measure=measure, call_seconds=0.5 if measure else 0.4)
    seen: Counter[Status] = Counter()

    @examples(count)
    @given(st.lists(ways, min_size=1, max_size=6))
    @example([leaving])
    @example([impossible])
    @example([replacing(None)])
    @example([replacing(EACH[0])])
    def verifications(chosen: list[Way]) -> None:
        plan = Plan(chosen, first="time" if measure else "load")
        verdict = judged(plan, request, tools, monkeypatch)
        assert is_sound(verdict)
        seen[verdict.status] += 1

    verifications()
    wanted = {Status.CORRECT, Status.CRASH, *([Status.CHEATING] if measure else [])}
    assert wanted <= set(seen), seen  # by the three that are not left to chance
    assert len(seen) > 2, seen


@pytest.mark.parametrize("count", [15, pytest.param(80, marks=pytest.mark.ci)])
def test_no_answer_makes_a_wrong_result_right(
    count: int, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_for("problem.py", (HERE / "wrong.py").read_text())

    @examples(count)
    @given(st.lists(ways, min_size=1, max_size=6))
    def verifications(chosen: list[Way]) -> None:
        verdict = judged(Plan(chosen), request, tools, monkeypatch)
        assert is_sound(verdict)
        assert verdict.status is not Status.CORRECT

    verifications()


def test_a_contestant_may_be_closed_while_another_thread_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def listen(sock: socket.socket) -> None:
        while sock.recv(1 << 10):
            pass

    start_doubles(monkeypatch, listen)
    for _ in range(100):
        contestant = Contestant(refuse, memory_bytes=1 << 30)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(contestant.ask, {"op": "call"}, seconds=MOST_S)
            outcome = contestant.close()
            with pytest.raises(ContestantGone) as gone:
                asked.result()
        assert gone.value.outcome is outcome


HALF = "\ud800"
"""Half of a character: JSON can bring it, and no encoding has it."""


@pytest.mark.parametrize(
    "change",
    [
        {"cpp_sources": (f"// {HALF}",)},
        {"extra_cflags": (f"-D{HALF}",)},
        {"extra_cflags": (f"-D'{HALF}",)},
        {"extra_ldflags": (f"-l{HALF}",)},
        {"extra_include_paths": (f"/{HALF}",)},
        {"extra_include_paths": ("/\x00",)},
        {"functions": {HALF: "f"}, "is_python_module": True},
    ],
    ids=str,
)
def test_build_requests_of_half_characters_end_as_builds(change: dict[str, Any], tools: Tools) -> None:
    fields = {
        "name": "ext",
        "cpp_sources": ("int f();",),
        "is_python_module": False,
        "no_implicit_headers": True,
    }
    request = BuildRequest.model_validate(fields | change)
    build = Builder(tools.cache, toolchain=tools.toolchain).build(request, seconds=120)
    assert build.state in (BuildState.OK, BuildState.ERROR)
    assert Build.model_validate_json(build.model_dump_json()) == build


@pytest.mark.ci
@pytest.mark.parametrize(
    "calls",
    [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow), 30],
    ids="after {} calls".format,
)
def test_a_candidate_that_scribbles_on_the_socket_ends_itself_only(calls: int, court: Court) -> None:
    """A thread of a real candidate writes to the runner's socket from some call on, at random moments."""
    scribbling = (HERE / "scribbling.py").read_text().replace("CALLS = 0", f"CALLS = {calls}")
    patient = {"load_seconds": 60, "call_seconds": 5, "memory_bytes": 4 << 30, "measure": True}
    verdict = court.judge(request_for("problem.py", scribbling, **patient))
    assert verdict.status not in (Status.CORRECT, Status.INFRASTRUCTURE_ERROR), verdict.reason
    honest = (HERE / "honest.py").read_text()
    after = court.judge(request_for("problem.py", honest, **patient | {"measure": False}))
    assert after.status is Status.CORRECT, after.reason
    assert not court.left_over()
