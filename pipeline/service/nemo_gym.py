"""NeMo-Gym's routes `/seed_session`, `/verify` and `/aggregate_metrics`, by which the service is a resources
server of its agents.

Source: the records of NeMo-Gym (github.com/NVIDIA-NeMo/Gym, nemo_gym/base_resources_server.py).
The row of the data set names the problem in `verifier_metadata.problem`.
"""

from __future__ import annotations

import statistics
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from kernelproof.client import Evaluated
from kernelproof.service.middleware import Refused
from kernelproof.service.schemas import EvaluationRequest, Word
from kernelproof.service.state import WAIT_S, TheCaller, TheService, body_of, read, validated

router = APIRouter()
TASK = "_ng_task_index"
"""NeMo-Gym's name for the row of the data set."""


class Named(BaseModel):
    """The problem that a row is about."""

    model_config = ConfigDict(extra="allow")

    problem: Word


class VerifyRequest(BaseModel):
    """NeMo-Gym's BaseVerifyRequest, and the row of the data set beside it."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: dict[str, Any]
    response: dict[str, Any] = Field(description="A response of the Responses API.")
    verifier_metadata: Named


class Verified(BaseModel):
    """The fields of an answer of `/verify` that count."""

    task: int = Field(default=0, alias="_ng_task_index", ge=0, le=2**53)
    reward: float = Field(ge=-1e9, le=1e9)
    mask_sample: bool = False


class AggregateRequest(BaseModel):
    """NeMo-Gym's AggregateMetricsRequest."""

    verify_responses: list[Verified]


@router.post("/seed_session")
def seed_session(_: TheCaller) -> dict[str, Any]:
    """Nothing is kept between the steps of a rollout."""
    return {}


@router.post("/aggregate_metrics", openapi_extra=body_of(AggregateRequest))
async def aggregate_metrics(request: Request, _: TheCaller) -> dict[str, Any]:
    """Statistics of rollouts' rewards, by task and over all. Those with `mask_sample` are left out."""
    rollouts = read(AggregateRequest, await request.body()).verify_responses
    tasks = sorted({each.task for each in rollouts})
    groups = {task: [each for each in rollouts if each.task == task] for task in tasks}
    whole = _statistics(rollouts)
    return {
        "group_level_metrics": [{TASK: task, **_statistics(group)} for task, group in groups.items()],
        "agent_metrics": whole,
        "key_metrics": {name: value for name, value in whole.items() if name.startswith("mean/")},
    }


@router.post("/verify", openapi_extra=body_of(VerifyRequest))
async def verify(request: Request, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """The reward of a rollout, by its last message; `mask_sample` where the service failed."""
    raw = await request.body()
    body = read(VerifyRequest, raw)
    evaluation = validated(
        EvaluationRequest, problem=body.verifier_metadata.problem, source=_text(body.response)
    )
    [stored] = await anyio.to_thread.run_sync(service.submit, caller, [evaluation])
    await service.until_ended(stored, WAIT_S)
    answer = await anyio.to_thread.run_sync(service.answer, caller, stored.id)
    return {**body.model_dump(mode="json"), **response_of(answer)}


def response_of(answer: dict[str, Any]) -> dict[str, Any]:
    """What `/verify` adds to a rollout, of an answer of the service."""
    found = Evaluated.of(answer)
    return {
        "reward": found.reward or 0.0,
        "mask_sample": found.reward is None,
        "failure_reason": answer["error"] if found.reward is None else None,
        "busy_machine": bool(found.busy),
        "kernelproof": answer,
    }


def _statistics(rollouts: list[Verified]) -> dict[str, float]:
    """As NeMo-Gym names them. Nothing of rewards where all were left out."""
    rewards = [each.reward for each in rollouts if not each.mask_sample]
    masked = {"mean/mask_sample": (len(rollouts) - len(rewards)) / len(rollouts)} if rollouts else {}
    if not rewards:
        return masked
    return masked | {
        "mean/reward": statistics.fmean(rewards),
        "max/reward": max(rewards),
        "min/reward": min(rewards),
        "median/reward": statistics.median(rewards),
        "std/reward": statistics.stdev(rewards) if len(rewards) > 1 else 0.0,
    }


def _text(response: dict[str, Any]) -> str:
    """The text of the last message. Raises Refused for what is no response."""
    try:
        messages = [item for item in response["output"] if item["type"] == "message"]
        parts = messages[-1]["content"] if messages else []
        return "".join(str(part["text"]) for part in parts if part["type"] == "output_text")
    except (KeyError, TypeError, IndexError):
        raise Refused(422, "invalid", "response: no response of the Responses API") from None
