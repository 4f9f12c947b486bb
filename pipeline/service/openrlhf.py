"""OpenRLHF's remote reward model: `--reward.remote_url http://HOST:PORT/get_reward`.

Source: `SingleTurnAgentExecutor` of OpenRLHF (github.com/OpenRLHF/OpenRLHF, openrlhf/utils/agent.py). After
180 s or an error it sends the same again, five times in all; then it has no reward.
"""

from __future__ import annotations

from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from kernelproof.client import Evaluated
from kernelproof.db.evaluations import StoredEvaluation
from kernelproof.service.middleware import Caller, Refused
from kernelproof.service.schemas import BATCH, TEXT_BYTES, EvaluationRequest
from kernelproof.service.state import Service, TheCaller, TheService, body_of, read, validated

router = APIRouter()
PATIENCE_S = 165.0
"""The service answers before OpenRLHF gives up."""
PAUSE_S = 1.0
"""Between two tries to get a place in a full queue."""
Text = Annotated[str, Field(max_length=2 * TEXT_BYTES)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=BATCH)]


class RewardRequest(BaseModel):
    """What OpenRLHF sends."""

    query: Texts = Field(description="Prompts with the answers behind them.")
    prompts: Texts
    labels: Texts = Field(description="Problems: ids, or sources.")


@router.post("/get_reward", openapi_extra=body_of(RewardRequest))
async def get_reward(request: Request, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """The rewards of a batch. 503 where one of it has none: a failure of the service is no reward of 0."""
    requests = _requests(read(RewardRequest, await request.body()))
    with anyio.move_on_after(PATIENCE_S):
        evaluations = await _submitted(service, caller, requests)
        for each in evaluations:
            await service.until_ended(each, PATIENCE_S)
        return await anyio.to_thread.run_sync(_rewards, service, caller, [each.id for each in evaluations])
    raise Refused(503, "not_yet", "the batch is not judged yet; send it again", Retry_After="1")


def _requests(batch: RewardRequest) -> list[EvaluationRequest]:
    """Raises Refused."""
    if not len(batch.query) == len(batch.prompts) == len(batch.labels):
        raise Refused(422, "invalid", "query, prompts and labels have to be lists of the same length")
    return [
        validated(
            EvaluationRequest,
            source=query.removeprefix(prompt),
            **{"reference" if "class Model" in label else "problem": label},
        )
        for query, prompt, label in zip(batch.query, batch.prompts, batch.labels, strict=True)
    ]


async def _submitted(
    service: Service, caller: Caller, requests: list[EvaluationRequest]
) -> list[StoredEvaluation]:
    """The evaluations, as soon as the queue has places for them. Raises Refused."""
    while True:
        try:
            return await anyio.to_thread.run_sync(service.submit_once, caller, requests)
        except Refused as error:
            if error.status != 429 or service.watch.over:
                raise
        await anyio.sleep(PAUSE_S)


def _rewards(service: Service, caller: Caller, numbers: list[str]) -> dict[str, Any]:
    """Raises Refused where one has no reward."""
    ends = {number: Evaluated.of(service.answer(caller, number)) for number in set(numbers)}
    results = [ends[number] for number in numbers]
    without = next((each for each in results if each.reward is None), None)
    if without is not None:
        why = without.reason or without.state
        raise Refused(503, "not_judged", f"an answer could not be judged: {why}", Retry_After="1")
    rewards = [each.reward for each in results]
    logs = {
        "correct": [float(each.correct) for each in results],
        "busy_machine": [float(bool(each.busy)) for each in results],
    }
    return {"rewards": rewards, "scores": rewards, "extra_logs": logs}
