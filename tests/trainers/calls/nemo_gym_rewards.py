"""NeMo-Gym's client of servers asks ours as it asks a resources server, with its own records."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

from calls import URL, given, tell
from nemo_gym.base_resources_server import BaseVerifyResponse
from nemo_gym.config_types import AggregateMetrics, BaseServerConfig
from nemo_gym.openai_utils import NeMoGymResponse
from nemo_gym.reward_profile import compute_aggregate_metrics
from nemo_gym.server_utils import GlobalAIOHTTPAsyncClientConfig, ServerClient, set_global_aiohttp_client
from omegaconf import OmegaConf

asked, at = given(), urlsplit(URL)
where = {"host": at.hostname, "port": at.port}
servers = OmegaConf.create({"kernels": {"resources_servers": {"kernelproof": where}}})
client = ServerClient(
    head_server_config=BaseServerConfig(host="127.0.0.1", port=1), global_config_dict=servers
)


def rollout(answer: str, task: int) -> dict[str, Any]:
    """A row of the data set, and a model's response to it."""
    said = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": answer, "annotations": []}],
    }
    response = NeMoGymResponse.model_validate(
        {
            "id": "r",
            "created_at": 0.0,
            "model": "given",
            "object": "response",
            "output": [said],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
    )
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "Write a kernel."}]},
        "response": response.model_dump(),
        "verifier_metadata": {"problem": asked["problem"]},
        "_ng_task_index": task,
        "_ng_rollout_index": 0,
    }


async def post(path: str, body: Any) -> Any:
    """One request by NeMo-Gym's client."""
    answer = await client.post(server_name="kernels", url_path=path, json=body)
    answer.raise_for_status()
    return await answer.json()


async def rewards() -> None:
    """As an agent asks: a session, rewards, statistics."""
    set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig())
    found = []
    for task, answer in enumerate(asked["answers"]):
        await post("/seed_session", rollout(answer, task))
        found.append(await post("/verify", rollout(answer, task)))
    responses = [BaseVerifyResponse.model_validate(each) for each in found]
    metrics = AggregateMetrics.model_validate(await post("/aggregate_metrics", {"verify_responses": found}))
    named = [f"{kind}/reward" for kind in ("mean", "max", "min", "median", "std")]
    own = compute_aggregate_metrics(found).agent_metrics
    tell(
        rewards=[each.reward for each in responses],
        busy=[each["busy_machine"] for each in found],
        metrics=metrics.model_dump(),
        own={name: own[name] for name in named},
    )


asyncio.run(rewards())
