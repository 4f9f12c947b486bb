"""Our client, also behind a server that loses requests and answers; trainers, and the routes of KernelGYM."""

from __future__ import annotations

import importlib
import socket
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from kernelproof.client import AsyncClient, Candidate, Client
from kernelproof.errors import MachineError, UsageError
from kernelproof.trainers import openrlhf, rewards, trl, verifiers, verl
from tests import loopback
from tests.cli import material
from tests.cli.program import Program
from tests.service.conftest import NO_PROGRAM, Running, serving
from tests.service.test_requests import error


@pytest.fixture
def client(service: Running) -> Iterator[Client]:
    with Client(service.url) as client:
        yield client


@pytest.fixture
def trainer(service: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A trainer's process, which knows the service by its environment."""
    monkeypatch.setenv("KERNELPROOF_URL", service.url)
    rewards.client.cache_clear()
    yield
    rewards.client().close()
    rewards.client.cache_clear()


@pytest.mark.ci
def test_many_are_evaluated_in_the_order_in_which_they_were_given(client: Client) -> None:
    sources = [NO_PROGRAM, material.wrong(), "def f(:", NO_PROGRAM]
    found = client.evaluate_many([Candidate(source, "relu") for source in sources])
    assert [each.status for each in found] == ["no_code", "wrong_output", "syntax_error", "no_code"]
    assert all(each.score == 0.0 and each.feedback and not each.correct for each in found)


@pytest.mark.ci
def test_the_same_key_is_never_evaluated_twice(client: Client) -> None:
    candidate = Candidate(NO_PROGRAM, "relu")
    assert client.evaluate(candidate).id == client.evaluate(candidate).id


def test_it_works_in_an_event_loop(service: Running) -> None:
    async def ask() -> str | None:
        async with AsyncClient(service.url) as client:
            [sent] = await client.submit([Candidate(NO_PROGRAM, "relu")])
            return (await client.wait(sent.id)).status

    assert anyio.run(ask) == "no_code"


def test_a_refusal_says_what_is_wrong(client: Client) -> None:
    with pytest.raises(UsageError, match="answers 422: no problem 'realu'"):
        client.evaluate(Candidate(NO_PROGRAM, "realu"))
    with pytest.raises(UsageError, match="KERNELPROOF_URL"):
        Client()
    with Client("http://127.0.0.1:9", patience_s=0.1) as away, pytest.raises(MachineError, match="reached"):
        away.evaluate(Candidate(NO_PROGRAM, "relu"))


def gym(task_id: str, **fields: Any) -> dict[str, Any]:
    """A task as KernelGYM's own client sends it."""
    return {
        "task_id": task_id,
        "reference_code": material.RELU,
        "kernel_code": material.wrong(),
        "toolkit": "kernelbench",
        "backend_adapter": "kernelbench",
        "backend": "cpp",
        "num_correct_trials": 1,
        "num_perf_trials": 100,
        "timeout": 100,
        "priority": "normal",
        "entry_point": "Model",
        "measure_performance": False,
        "workflow": "kernelbench",
        **fields,
    }


def test_kernelgym_asks_and_looks_and_fetches(service: Running) -> None:
    """As KernelGYM's published client does: POST /evaluate, GET /status/ID, GET /results/ID."""
    said = service.ask("POST", "/evaluate", json=gym("t1")).json()
    assert (said["status"], said["compiled"], said["correctness"]) == ("completed", True, False)
    assert said["decoy_kernel"] is False and said["error_code"] == "wrong_output"
    assert service.ask("GET", "/status/t1").json()["status"] == "completed"
    assert service.ask("GET", "/results/t1").json() == said
    assert service.ask("GET", "/workflow/results/t1").json()["result"] == said
    assert service.ask("DELETE", "/tasks/t1").json()["status"] == "completed"
    assert service.ask("GET", "/queue/status").json()["completed"] > 0
    assert len(service.ask("GET", "/workers/status").json()["workers"]) == 1


def test_kernelgym_sends_batches_and_workflows(service: Running) -> None:
    tasks = [gym("b1", kernel_code=NO_PROGRAM), gym("b2", kernel_code="import torch\nclass ModelNew: pass")]
    said = service.ask("POST", "/evaluate/batch", json={"batch_id": "b", "tasks": tasks}).json()
    assert (said["total_tasks"], said["completed_tasks"], said["batch_status"]) == (2, 2, "completed")
    assert [each["compiled"] for each in said["results"]] == [False, False]
    sent = {"workflow": "kernelbench", "payload": gym("w1", kernel_code=NO_PROGRAM)}
    assert service.ask("POST", "/workflow/submit", json=sent).json()["status"] == "completed"
    wrong = gym("t2", entry_point="Net")
    assert "entry_point: 'Net'" in error(service.ask("POST", "/evaluate", json=wrong), 422)


@pytest.mark.ci
@pytest.mark.usefixtures("trainer")
def test_rewards_by_the_protocols_of_trainers() -> None:
    """Held against the published signatures of TRL, verl, verifiers and OpenRLHF."""
    right, wrong = material.right(), material.wrong()
    state: dict[str, Any] = {}
    talk = [[{"role": "assistant", "content": material.fenced(right)}], material.fenced(wrong)]
    assert trl.kernel_reward(completions=talk, problem=["relu", "relu"], prompts=["", ""]) == [1.0, 0.0]
    assert verl.compute_score("set", wrong, "relu") == {
        "score": 0.0,
        "correct": 0.0,
        "judged": 1.0,
        "busy_machine": 0.0,
    }
    assert verl.compute_score("set", right, material.RELU, {"index": 1})["score"] == 1.0
    assert anyio.run(lambda: verifiers.kernel_reward(talk[0], "relu", state, info={})) == 1.0
    assert state == {"busy_machine": False}
    said = openrlhf.reward_func(["Write." + right, "Write." + wrong], ["Write."] * 2, ["relu"] * 2)
    assert said["rewards"] == said["scores"] == [1.0, 0.0]


def test_a_process_ends_that_asked_for_a_reward(service: Running) -> None:
    """A reward function's client is never closed, and must not keep its process alive."""
    ask = "from kernelproof.trainers.verl import compute_score; print(compute_score('set', 'none', 'relu'))"
    environment = {**service.program.environment, "KERNELPROOF_URL": service.url}
    command = [sys.executable, "-c", ask]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert (
        done.stdout == "{'score': 0.0, 'correct': 0.0, 'judged': 1.0, 'busy_machine': 0.0}\n"
        and done.stderr == ""
    )


@pytest.mark.usefixtures("trainer")
def test_skyrl_takes_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held against the published base class of SkyRL's environments; the package is not installed."""
    published = types.ModuleType("skyrl_gym.envs.base_text_env")
    published.BaseTextEnv = type("BaseTextEnv", (), {"__init__": _without_turns})  # type: ignore[attr-defined]
    published.BaseTextEnvStepOutput = dict  # type: ignore[attr-defined]
    for name in ("skyrl_gym", "skyrl_gym.envs"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "skyrl_gym.envs.base_text_env", published)
    skyrl = importlib.import_module("kernelproof.trainers.skyrl")
    env = skyrl.KernelEnv({}, {"reward_spec": {"ground_truth": "relu"}, "max_turns": 2})
    first, second = env.step(material.wrong()), env.step(material.right())
    assert (first["reward"], first["done"], second["reward"], second["done"]) == (0.0, False, 1.0, True)
    assert "What was seen" in first["observations"][0]["content"] and second["observations"] == []


def _without_turns(self: Any) -> None:
    self.turns, self.max_turns = 0, 1


def test_nemo_gym_verifies_a_rollout(service: Running) -> None:
    """Held against the published records of NeMo-Gym's resources servers."""
    message = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": NO_PROGRAM}],
    }
    rollout = {
        "responses_create_params": {"input": [{"role": "user", "content": "Write."}]},
        "response": {"id": "r", "output": [{"type": "reasoning", "summary": []}, message]},
        "verifier_metadata": {"problem": "relu"},
    }
    said = service.ask("POST", "/verify", json=rollout).json()
    assert said["reward"] == 0.0 and said["mask_sample"] is said["busy_machine"] is False
    assert said["kernelproof"]["result"]["status"] == "no_code"
    assert all(said[name] == value for name, value in rollout.items())
    assert service.ask("POST", "/seed_session", json={}).status_code == 200
    broken = {**rollout, "response": {"output": [1]}}
    assert "no response of the Responses API" in error(service.ask("POST", "/verify", json=broken), 422)
    nameless = {**rollout, "verifier_metadata": {}}
    assert "verifier_metadata.problem" in error(service.ask("POST", "/verify", json=nameless), 422)


@pytest.mark.ci
def test_openrlhf_asks_for_a_batch(service: Running) -> None:
    """As OpenRLHF's published client does: one request, and the same again after an error."""
    right, wrong = material.right(), material.wrong()
    labels = ["relu", material.RELU, "relu"]
    sent = {"query": ["Write." + each for each in (right, wrong, right)], "prompts": ["Write."] * 3}
    said = service.ask("POST", "/get_reward", json={**sent, "labels": labels}).json()
    assert said["rewards"] == said["scores"] == [1.0, 0.0, 1.0]
    before = service.ask("GET", "/v1/queue").json()["states"]
    assert service.ask("POST", "/get_reward", json={**sent, "labels": labels}).json() == said
    assert service.ask("GET", "/v1/queue").json()["states"] == before, "equal work was done again"
    assert "same length" in error(service.ask("POST", "/get_reward", json={**sent, "labels": ["relu"]}), 422)
    assert "no problem" in error(service.ask("POST", "/get_reward", json={**sent, "labels": ["x"] * 3}), 422)


LOST, HALF, CUT = "lost", "half", "cut"
"""The service answers, and nothing or half of that arrives; the connection is cut before the answer."""


@dataclass(frozen=True)
class Refusal:
    """An answer that is not the service's."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Way:
    """The way to the service, and what went over it."""

    url: str
    requests: list[tuple[str, bytes, float]] = field(default_factory=list)
    """Method, body and time of each request."""

    third: Callable[[], object] = lambda: None
    """Called when the third request has come."""

    @property
    def sent(self) -> list[bytes]:
        """The bodies of submissions."""
        return [body for method, body, _ in self.requests if method == "POST"]


@contextmanager
def faulty(service: Running, *faults: str | Refusal, port: int = 0) -> Iterator[Way]:
    """A server in front of the service; each of the first requests meets one of the faults."""
    left, way = list(faults), Way("")

    class Handler(loopback.Quiet):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            way.requests.append((self.command, body, time.monotonic()))
            if len(way.requests) == 3:
                way.third()
            fault = left.pop(0) if left else None
            if isinstance(fault, Refusal):
                self._answer(fault.status, b'{"error": {"message": "not now"}}', **fault.headers)
            elif fault == CUT:
                with pytest.raises(httpx2.TimeoutException):
                    self._forwarded(body, patience=0.05)
            else:
                found = self._forwarded(body, patience=60)
                if fault != LOST:
                    part = len(found.content) // 2 if fault == HALF else None
                    self._answer(found.status_code, found.content, part)

        do_POST = do_GET

        def _forwarded(self, body: bytes, patience: float) -> httpx2.Response:
            url = service.url + self.path
            return httpx2.request(self.command, url, content=body, timeout=patience)

        def _answer(self, status: int, body: bytes, part: int | None = None, **headers: str) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body[:part])

    with loopback.serving(Handler, port) as url:
        way.url = url
        yield way


def count(service: Running) -> int:
    """The evaluations that the service ever got."""
    return sum(service.ask("GET", "/v1/queue").json()["states"].values())


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "faults",
    [(LOST, HALF), (Refusal(502), Refusal(504)), (Refusal(503), LOST)],
    ids=["answers lost", "gateway", "away, then lost"],
)
def test_a_submission_whose_answer_is_lost_is_sent_again_and_has_one_effect(
    service: Running, faults: tuple[str | Refusal, ...]
) -> None:
    before = count(service)
    with faulty(service, *faults) as way, Client(way.url) as client:
        assert client.evaluate(Candidate(NO_PROGRAM, "relu")).status == "no_code"
    assert len(way.sent) == len(faults) + 1 and len(set(way.sent)) == 1, "not the same request"
    assert count(service) == before + 1


def test_a_service_that_is_away_for_a_while_is_asked_again(service: Running) -> None:
    with socket.socket() as reserved, ThreadPoolExecutor(1) as threads:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))  # connections are refused, and nobody else gets the port
        port = reserved.getsockname()[1]
        with Client(f"http://127.0.0.1:{port}", patience_s=60) as client:
            found = threads.submit(client.evaluate, Candidate(NO_PROGRAM, "relu"))
            time.sleep(0.5)
            with faulty(service, port=port) as way:
                assert found.result(60).status == "no_code" and len(way.sent) == 1


@pytest.mark.ci
def test_a_result_is_waited_for_again_when_the_network_is_cut_in_the_middle(
    program: Program, suite: Path
) -> None:
    with serving(program, suite, "--no-worker") as service, Client(service.url) as direct:
        [sent] = direct.submit([Candidate(NO_PROGRAM, "relu")])
        with faulty(service, CUT, CUT) as way, Client(way.url) as client:
            way.third = lambda: direct.cancel(sent.id)
            assert client.wait(sent.id).state == "cancelled"
        assert len(way.requests) == 3 and not way.sent and count(service) == 1


def test_the_service_says_when_to_come_again(service: Running) -> None:
    full = Refusal(429, {"Retry_After_Ms": "600"})
    with faulty(service, full) as way, Client(way.url) as client:
        assert client.evaluate(Candidate(NO_PROGRAM, "relu")).status == "no_code"
    first, second = (at for method, _, at in way.requests if method == "POST")
    assert second - first >= 0.6
    late = Refusal(503, {"Retry_After": "100"})
    with (
        faulty(service, late) as way,
        Client(way.url, patience_s=5) as client,
        pytest.raises(MachineError, match="answers 503: not now"),
    ):
        client.evaluate(Candidate(NO_PROGRAM, "relu"))
    assert len(way.requests) == 1


def test_a_batch_that_the_queue_has_no_place_for_is_sent_in_parts(service: Running) -> None:
    before, sources = count(service), [NO_PROGRAM, "def f(:", NO_PROGRAM, "def g(:"]
    with faulty(service, Refusal(429), LOST) as way, Client(way.url) as client:
        found = client.evaluate_many([Candidate(source, "relu") for source in sources])
    assert [each.status for each in found] == ["no_code", "syntax_error"] * 2
    assert len(way.sent) == 4, "whole, the first half twice, the second half"
    assert count(service) == before + len(sources)


def test_a_failure_of_the_service_itself_is_not_asked_for_again(service: Running) -> None:
    with (
        faulty(service, Refusal(500)) as way,
        Client(way.url) as client,
        pytest.raises(MachineError, match="answers 500: not now"),
    ):
        client.evaluate(Candidate(NO_PROGRAM, "relu"))
    assert len(way.requests) == 1
