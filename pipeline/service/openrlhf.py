"""OpenRLHF's remote reward model: `--reward.remote_url http://HOST:PORT/get_reward`.

Source: `SingleTurnAgentExecutor` of OpenRLHF (github.com/OpenRLHF/OpenRLHF, openrlhf/utils/agent.py). After
180 s or an error it sends the same again, five times in all; then it has no reward.
"""

from __future__ import annotations

from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from kernelproof.client import Evaluated
from kernelproof.db.evaluations import StoredEvaluation
from kernelproof.service.guard import Known, Refused
from kernelproof.service.requests import BATCH, TEXT_BYTES, EvaluationRequest
from kernelproof.service.state import Caller, Service, TheService, body_of, made, read

router = APIRouter()
PATIENCE_S = 165.0
"""The service answers before OpenRLHF gives up."""
PAUSE_S = 1.0
"""Between two tries to get a place in a full queue."""
Text = Annotated[str, Field(max_length=2 * TEXT_BYTES)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=BATCH)]


class RewardRequest(BaseModel):
    """What OpenRLHF sends."""

    model_config = ConfigDict(extra="ignore")

    query: Texts = Field(description="Prompts with the answers behind them.")
    prompts: Texts
    labels: Texts = Field(description="Problems: ids, or sources.")


@router.post("/get_reward", openapi_extra=body_of(RewardRequest))
async def get_reward(request: Request, service: TheService, caller: Caller) -> dict[str, Any]:
    """The rewards of a batch. 503 where one of it has none: a failure of the service is no reward of 0."""
    asked = _evaluations(read(RewardRequest, await request.body()))
    with anyio.move_on_after(PATIENCE_S):
        sent = await _submitted(service, caller, asked)
        for each in sent:
            await service.until_ended(each, PATIENCE_S)
        return await anyio.to_thread.run_sync(_told, service, caller, [each.id for each in sent])
    raise Refused(503, "not_yet", "the batch is not judged yet; send it again", Retry_After="1")


def _evaluations(asked: RewardRequest) -> list[EvaluationRequest]:
    """Raises Refused."""
    if not len(asked.query) == len(asked.prompts) == len(asked.labels):
        raise Refused(422, "invalid", "query, prompts and labels have to be lists of the same length")
    return [
        made(
            EvaluationRequest,
            source=query.removeprefix(prompt),
            **{"reference" if "class Model" in label else "problem": label},
        )
        for query, prompt, label in zip(asked.query, asked.prompts, asked.labels, strict=True)
    ]


async def _submitted(
    service: Service, caller: Known, asked: list[EvaluationRequest]
) -> list[StoredEvaluation]:
    """The evaluations, as soon as the queue has places for them. Raises Refused."""
    while True:
        try:
            return await anyio.to_thread.run_sync(service.submit_once, caller, asked)
        except Refused as error:
            if error.status != 429 or service.watch.over:
                raise
        await anyio.sleep(PAUSE_S)


def _told(service: Service, caller: Known, numbers: list[str]) -> dict[str, Any]:
    """Raises Refused where one has no reward."""
    ends = {number: Evaluated.of(service.answer(caller, number)) for number in set(numbers)}
    found = [ends[number] for number in numbers]
    without = next((each for each in found if each.reward is None), None)
    if without is not None:
        why = without.reason or without.state
        raise Refused(503, "not_judged", f"an answer could not be judged: {why}", Retry_After="1")
    rewards = [each.reward for each in found]
    correct = [float(each.correct) for each in found]
    return {"rewards": rewards, "scores": rewards, "extra_logs": {"correct": correct}}
