"""What the routes share: store, queue, callers; and how they get it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer
from pydantic import BaseModel, TypeAdapter, ValidationError

from kernelproof.client import Evaluated
from kernelproof.db.evaluations import (
    MOST_LOSSES,
    OPEN,
    KeyConflict,
    QueueFull,
    StoredEvaluation,
    Submitted,
)
from kernelproof.db.store import Store
from kernelproof.errors import UsageError
from kernelproof.service.answers import answer
from kernelproof.service.guard import STATE, Known, Refused
from kernelproof.service.requests import EvaluationRequest, Reader
from kernelproof.service.waiting import Watch
from kernelproof.types.explain import explain

WAIT_S = 300.0
"""Most seconds that a request may wait for a result."""
TOLD = 20
"""Of the mistakes in a batch so many are told."""

Model = TypeVar("Model", bound=BaseModel)


@dataclass
class Service:
    """What the routes share."""

    store: Store
    reader: Reader
    watch: Watch
    most: int
    """Evaluations that may wait or run at once."""
    most_losses: int = MOST_LOSSES
    """An evaluation whose daemons were lost so often ends."""

    def submit(self, caller: Known, asked: list[EvaluationRequest]) -> list[StoredEvaluation]:
        """Puts all of them into the queue, or none. Raises Refused."""
        return self._put(caller, self._read(asked))

    def submit_once(self, caller: Known, asked: list[EvaluationRequest]) -> list[StoredEvaluation]:
        """As `submit`, but equal work that this caller sent so before is taken, unless it came to nothing."""
        items = self._read(asked)
        return self._put(
            caller, [replace(item, idempotency_key=self._newest_key(caller, item)) for item in items]
        )

    def _newest_key(self, caller: Known, item: Submitted) -> str:
        """The idempotency key of equal work that may still come to something, or a new one."""
        for number in count():
            key = f"once:{item.request_sha256}:{number}"
            found = self.store.service.evaluations.with_key(caller.name, key)
            if found is None or found.state in OPEN:
                return key
            if Evaluated.of(answer(self.store, found)).reward is not None:
                return key
        raise AssertionError

    def _put(self, caller: Known, items: list[Submitted]) -> list[StoredEvaluation]:
        try:
            self._require_deadlines(caller, items)
            return self.store.service.evaluations.submit(
                caller.name, items, most=self.most, quota=caller.quota, most_losses=self.most_losses
            )
        except QueueFull as error:
            whose = "the caller's quota" if error.quota else "the queue"
            if error.new > error.most:  # they would never fit
                message = f"{whose} has {error.most} places in all, and these need {error.new}"
                raise Refused(413, "too_many", f"{message}; send at most {error.most} at once") from None
            message = f"{whose} has {error.waiting} of {error.most} places taken; send these again later"
            raise Refused(429, "queue_full", message, Retry_After=str(self._wait_for(error))) from None
        except KeyConflict as error:
            message = (
                f"the idempotency key {error.args[0]!r} came with another request before; choose another"
            )
            raise Refused(409, "idempotency_key", message) from None

    def mine(self, caller: Known, number: str) -> StoredEvaluation:
        """The caller's evaluation. Raises Refused where there is none."""
        found = self.store.service.evaluations.get(number, caller.name)
        if found is None:
            raise Refused(404, "unknown", f"there is no evaluation {number!r:.80}")
        return found

    def answer(self, caller: Known, number: str) -> dict[str, Any]:
        """The evaluation as it is now."""
        return answer(self.store, self.mine(caller, number))

    async def until_ended(self, found: StoredEvaluation, seconds: float) -> None:
        """Returns when it has ended, or after so many seconds."""
        if found.state in OPEN:
            await self.watch.ended(found.id, seconds)

    def _read(self, asked: list[EvaluationRequest]) -> list[Submitted]:
        """Raises Refused that says of each evaluation what is wrong with it."""
        items, wrong = [], []
        for place, request in enumerate(asked):
            try:
                items.append(self.reader.read(request))
            except UsageError as error:
                wrong.append(f"evaluations[{place}]: {error}" if len(asked) > 1 else str(error))
        if wrong:
            raise Refused(422, "invalid", "; ".join(wrong[:TOLD]))
        return items

    def _require_deadlines(self, caller: Known, items: list[Submitted]) -> None:
        """Raises Refused where a deadline would pass at the rate of the last minutes; and KeyConflict."""
        evaluations = self.store.service.evaluations
        rate = evaluations.rate() if any(item.deadline_s for item in items) else None
        if rate is None:
            return
        ahead = {each: evaluations.ahead(each) for each in {item.priority for item in items}}
        for place, item in enumerate(items):
            if item.deadline_s is None:
                continue
            wait = (ahead[item.priority] + place) / rate
            if wait > item.deadline_s and not evaluations.needs_no_work(caller.name, item):
                message = (
                    f"the deadline of {item.deadline_s:g} s cannot be met: about {wait:.0f} s of work are "
                    "waiting before it"
                )
                raise Refused(409, "deadline_cannot_be_met", message)

    def _wait_for(self, full: QueueFull) -> int:
        """Seconds until a tenth of what waits is done, at the pace of the last minutes."""
        rate = self.store.service.evaluations.rate()
        return 10 if rate is None else min(600, max(1, round(full.waiting / 10 / rate)))


_SCHEME = HTTPBearer(auto_error=False, description="A caller's token, where the operator gave out any.")
"""For the description of the routes alone."""


def _service(request: Request) -> Service:
    found = request.app.state.service
    assert isinstance(found, Service)
    return found


def _caller(request: Request, _: Annotated[Any, Security(_SCHEME)]) -> Known:
    found = getattr(request.state, STATE)
    assert isinstance(found, Known), "the door lets nobody else in"
    return found


TheService = Annotated[Service, Depends(_service)]
Caller = Annotated[Known, Depends(_caller)]
"""The caller. The door asked for the token before any route."""


def read(model: type[Model], raw: bytes) -> Model:
    """The record in a request's body. Raises Refused: not JSON, nested too deeply, or not as it has to be."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            why = error.errors()[0]["msg"].removeprefix("Invalid JSON: ")
            raise Refused(400, "not_json", f"the body is not JSON: {why}") from None
        raise Refused(422, "invalid", explain(error, {"": "the body"})) from None


def made(model: type[Model], **given: Any) -> Model:
    """A record of what came in another protocol. Raises Refused."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise Refused(422, "invalid", explain(error)) from None


def body_of(model: Any) -> dict[str, Any]:
    """The description of a body that is read by `read`. `described` puts its `$defs` where they belong."""
    schema = TypeAdapter(model).json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def described(openapi: dict[str, Any]) -> dict[str, Any]:
    """The service's description, with the records inside bodies among the components."""
    components = openapi.setdefault("components", {}).setdefault("schemas", {})
    for path in openapi["paths"].values():
        for operation in path.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            components |= body.get("schema", {}).pop("$defs", {})
    return openapi
