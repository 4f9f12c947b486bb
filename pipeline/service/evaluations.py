"""The routes of evaluations: send, ask, follow, cancel."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ValidationError

from kernelproof.db.evaluations import OPEN, StoredEvaluation
from kernelproof.service.schemas import BatchRequest, EvaluationRequest
from kernelproof.service.state import WAIT_S, Service, TheCaller, TheService, Watch, body_of, read

SILENCE_S = 15.0
"""Seconds without news after which a comment is sent, so that no proxy closes the connection."""
LOOK_S = 1.0
"""Seconds between two looks at the state."""


async def events(watch: Watch, ask: Callable[[], dict[str, Any]]) -> AsyncIterator[str]:
    """Server-sent events, one for each state; the last holds the result. Ends when the service does."""
    state, silent = None, 0.0
    while True:
        body = await anyio.to_thread.run_sync(ask)
        if body["state"] != state:
            state, silent = body["state"], 0.0
            yield f"event: {state}\ndata: {json.dumps(body)}\n\n"
        elif silent >= SILENCE_S:
            silent = 0.0
            yield ": waiting\n\n"
        if state not in OPEN or watch.over:
            return
        await watch.ended(body["id"], LOOK_S)
        silent += LOOK_S


router = APIRouter(prefix="/v1/evaluations")
Wait = Annotated[float, Query(ge=0, le=WAIT_S, allow_inf_nan=False, description="Seconds to wait.")]


class _Either(BaseModel):
    evaluations: Any = None


@router.post("", status_code=202, openapi_extra=body_of(EvaluationRequest | BatchRequest))
async def submit(request: Request, service: TheService, caller: TheCaller, wait: Wait = 0.0) -> JSONResponse:
    """Sends one evaluation, or a batch of which all are taken or none."""
    if wait:
        caller.begin_poll()
    raw = await request.body()
    many = _is_batch(raw)
    requests = read(BatchRequest, raw).evaluations if many else [_one(request, raw)]
    evaluations = await anyio.to_thread.run_sync(service.submit, caller, requests)
    if wait:
        await _until_ended(request, service, evaluations, wait)
    body = await anyio.to_thread.run_sync(lambda: [service.answer(caller, each.id) for each in evaluations])
    status = 202 if any(each["state"] in OPEN for each in body) else 200
    return JSONResponse({"evaluations": body} if many else body[0], status)


@router.get("/{number}")
async def get(
    number: str, request: Request, service: TheService, caller: TheCaller, wait: Wait = 0.0
) -> dict[str, Any]:
    """One evaluation; with `wait`, as soon as it has ended, or after so many seconds."""
    if wait:
        caller.begin_poll()
        evaluation = await anyio.to_thread.run_sync(service.mine, caller, number)
        await _until_ended(request, service, [evaluation], wait)
    return await anyio.to_thread.run_sync(service.answer, caller, number)


@router.get("/{number}/events", responses={200: {"content": {"text/event-stream": {}}}})
async def follow(number: str, service: TheService, caller: TheCaller) -> StreamingResponse:
    """The evaluation's states as server-sent events, until it has ended."""
    caller.begin_poll()
    await anyio.to_thread.run_sync(service.mine, caller, number)
    stream = events(service.watch, lambda: service.answer(caller, number))
    headers = {"Cache-Control": "no-store"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


@router.delete("/{number}")
def cancel(number: str, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """Cancels it, unless it has ended. A verdict that a worker still gives is refused."""
    service.mine(caller, number)
    service.store.service.evaluations.cancel(number)
    return service.answer(caller, number)


async def _until_ended(
    request: Request, service: Service, evaluations: Sequence[StoredEvaluation], seconds: float
) -> None:
    """Returns when all have ended, after so many seconds, or when the caller is gone."""

    async def until_gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        waiting.cancel_scope.cancel()

    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(until_gone)
            for each in evaluations:
                await service.until_ended(each, seconds)
            waiting.cancel_scope.cancel()


def _is_batch(raw: bytes) -> bool:
    try:
        return _Either.model_validate_json(raw).evaluations is not None
    except ValidationError:
        return False


def _one(request: Request, raw: bytes) -> EvaluationRequest:
    """The only evaluation of a request, whose key may be in a header."""
    one, key = read(EvaluationRequest, raw), request.headers.get("idempotency-key")
    if one.idempotency_key or not key:
        return one
    return read(EvaluationRequest, one.model_copy(update={"idempotency_key": key}).model_dump_json().encode())
