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
from kernelproof.service.requests import BatchRequest, EvaluationRequest
from kernelproof.service.state import WAIT_S, Caller, Service, TheService, body_of, read
from kernelproof.service.waiting import Watch

SILENCE_S = 15.0
"""After so many seconds without news a comment is sent, so that nobody on the way closes the connection."""
LOOK_S = 1.0
"""Seconds between two looks whether a worker has taken it."""


async def events(watch: Watch, ask: Callable[[], dict[str, Any]]) -> AsyncIterator[str]:
    """One event for each state that is seen; the last one holds the result. Ends with the service, too."""
    state, silent = None, 0.0
    while True:
        said = await anyio.to_thread.run_sync(ask)
        if said["state"] != state:
            state, silent = said["state"], 0.0
            yield f"event: {state}\ndata: {json.dumps(said)}\n\n"
        elif silent >= SILENCE_S:
            silent = 0.0
            yield ": waiting\n\n"
        if state not in OPEN or watch.over:
            return
        await watch.ended(said["id"], LOOK_S)
        silent += LOOK_S


router = APIRouter(prefix="/v1/evaluations")
Wait = Annotated[float, Query(ge=0, le=WAIT_S, allow_inf_nan=False, description="Seconds to wait.")]


class _Either(BaseModel, extra="ignore"):
    """Whether a body is a batch."""

    evaluations: Any = None


@router.post("", status_code=202, openapi_extra=body_of(EvaluationRequest | BatchRequest))
async def submit(request: Request, service: TheService, caller: Caller, wait: Wait = 0.0) -> JSONResponse:
    """Sends one evaluation, or a batch of which all are taken or none."""
    if wait:
        caller.begin_poll()
    raw = await request.body()
    many = _is_batch(raw)
    asked = read(BatchRequest, raw).evaluations if many else [_one(request, raw)]
    found = await anyio.to_thread.run_sync(service.submit, caller, asked)
    if wait:
        await _until_ended(request, service, found, wait)
    said = await anyio.to_thread.run_sync(lambda: [service.answer(caller, each.id) for each in found])
    status = 202 if any(each["state"] in OPEN for each in said) else 200
    return JSONResponse({"evaluations": said} if many else said[0], status)


@router.get("/{number}")
async def get(
    number: str, request: Request, service: TheService, caller: Caller, wait: Wait = 0.0
) -> dict[str, Any]:
    """One evaluation; with `wait`, as soon as it has ended, or after so many seconds."""
    if wait:
        caller.begin_poll()
        found = await anyio.to_thread.run_sync(service.mine, caller, number)
        await _until_ended(request, service, [found], wait)
    return await anyio.to_thread.run_sync(service.answer, caller, number)


@router.get("/{number}/events", responses={200: {"content": {"text/event-stream": {}}}})
async def follow(number: str, service: TheService, caller: Caller) -> StreamingResponse:
    """The evaluation's states as server-sent events, until it has ended."""
    caller.begin_poll()
    await anyio.to_thread.run_sync(service.mine, caller, number)
    stream = events(service.watch, lambda: service.answer(caller, number))
    headers = {"Cache-Control": "no-store"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


@router.delete("/{number}")
def cancel(number: str, service: TheService, caller: Caller) -> dict[str, Any]:
    """Cancels it, unless it has ended. A verdict that a worker still gives is refused."""
    service.mine(caller, number)
    service.store.service.evaluations.cancel(number)
    return service.answer(caller, number)


async def _until_ended(
    request: Request, service: Service, found: Sequence[StoredEvaluation], seconds: float
) -> None:
    """Returns when all have ended, after so many seconds, or when the caller is gone."""

    async def until_gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        waiting.cancel_scope.cancel()

    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(until_gone)
            for each in found:
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
