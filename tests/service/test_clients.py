"""Our client, KernelGYM's routes, and the reward functions of trainers, against a running service."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from kernelproof.client import AsyncClient, Candidate, Client
from kernelproof.errors import MachineError, UsageError
from kernelproof.trainers import openrlhf, rewards, trl, verifiers, verl
from tests.cli import material
from tests.service.conftest import NO_PROGRAM, Running
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
    talk = [[{"role": "assistant", "content": material.fenced(right)}], material.fenced(wrong)]
    assert trl.kernel_reward(completions=talk, problem=["relu", "relu"], prompts=["", ""]) == [1.0, 0.0]
    assert verl.compute_score("set", wrong, "relu") == {"score": 0.0, "correct": 0.0, "judged": 1.0}
    assert verl.compute_score("set", right, material.RELU, {"index": 1})["score"] == 1.0
    assert anyio.run(lambda: verifiers.kernel_reward(completion=talk[0], answer="relu", info={})) == 1.0
    said = openrlhf.reward_func(["Write." + right, "Write." + wrong], ["Write."] * 2, ["relu"] * 2)
    assert said["rewards"] == said["scores"] == [1.0, 0.0]


def test_a_process_ends_that_asked_for_a_reward(service: Running) -> None:
    """A reward function's client is never closed, and must not keep its process alive."""
    ask = "from kernelproof.trainers.verl import compute_score; print(compute_score('set', 'none', 'relu'))"
    environment = {**service.program.environment, "KERNELPROOF_URL": service.url}
    command = [sys.executable, "-c", ask]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "{'score': 0.0, 'correct': 0.0, 'judged': 1.0}\n" and done.stderr == ""


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
    assert said["reward"] == 0.0 and said["mask_sample"] is False
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
