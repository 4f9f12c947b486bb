"""What the routes share: `Service`, its dependencies, validation of bodies, and `Watch`, which has one look
for all who wait for evaluations to end, whenever something was stored."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated, Any, TypeVar

import anyio
import anyio.to_thread
from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer
from pydantic import BaseModel, TypeAdapter, ValidationError

from kernelproof.client import Evaluated
from kernelproof.db.evaluations import MOST_LOSSES, OPEN, KeyConflict, QueueFull, StoredEvaluation, Submitted
from kernelproof.db.store import Store
from kernelproof.errors import StoreError, UsageError
from kernelproof.service.middleware import STATE, Caller, Refused
from kernelproof.service.schemas import EvaluationRequest, Reader, answer
from kernelproof.types.record import explain

LOOK_S = 1.0
"""Seconds between two looks without a notification, while somebody waits: one may be lost."""
AGAIN_S = 1.0
"""Before another look at a database that cannot be used."""
_LOG = logging.getLogger("kernelproof.service")


class Watch:
    """Wakes those who wait for an evaluation when it has ended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, anyio.Event] = {}
        self._count: dict[str, int] = {}
        self._news = asyncio.Event()
        self._stored = False
        """Something was stored since the last look, so that all are asked for, and not only the new ones."""
        self._new: dict[str, None] = {}
        """Those for whom nobody waited at the last look."""
        self._somebody = threading.Event()
        """Set while somebody waits; the thread that listens sleeps otherwise."""
        self._looking = anyio.CapacityLimiter(1)
        self.over = False
        """Nobody waits any more, since the service ends."""

    async def ended(self, number: str, seconds: float) -> None:
        """Returns when the evaluation has ended, after so many seconds, or when the service ends."""
        if self.over:
            return
        event = self._waiting.setdefault(number, anyio.Event())
        self._count[number] = self._count.get(number, 0) + 1
        self._somebody.set()
        self._new[number] = None  # it may have ended before anybody waited
        self._news.set()
        try:
            with anyio.move_on_after(seconds):
                await event.wait()
        finally:
            self._count[number] -= 1
            if not self._count[number]:
                del self._count[number]
                if self._waiting.get(number) is event:
                    del self._waiting[number]

    @property
    def waiting(self) -> int:
        return sum(self._count.values())

    def end(self) -> None:
        """Wakes all, for good. For the thread of the event loop."""
        self.over = True
        for event in self._waiting.values():
            event.set()

    async def run(self) -> None:
        """Looks until it is cancelled."""
        stop, loop = threading.Event(), asyncio.get_running_loop()

        def stored() -> None:
            self._stored = True
            self._news.set()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(stored)

        listening = threading.Thread(target=self._listen, args=(tell, stop), name="listening", daemon=True)
        listening.start()
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                await self._look()
        finally:
            stop.set()
            self._somebody.set()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(listening.join, LOOK_S)

    def _listen(self, tell: Callable[[], None], stop: threading.Event) -> None:
        with closing(self._store.service.evaluations.listener()) as listener:
            while not stop.is_set():
                self._somebody.wait()
                listener.wait(LOOK_S, stop)
                tell()

    async def _look(self) -> None:
        if not self._waiting:
            self._somebody.clear()
            self._new.clear()
            return
        asked = list(self._waiting if self._stored else (each for each in self._new if each in self._waiting))
        self._stored = False
        self._new.clear()
        if not asked:
            return
        look = self._store.service.evaluations.ended
        try:
            ended = await anyio.to_thread.run_sync(look, asked, limiter=self._looking)
        except StoreError as error:
            _LOG.warning("kernelproof: those who wait are not told of ends: %s", error)
            await anyio.sleep(AGAIN_S)
            self._stored = True
            self._news.set()
            return
        for number in ended:
            if (event := self._waiting.pop(number, None)) is not None:
                event.set()


WAIT_S = 300.0
"""Most seconds that a request may wait for a result."""
MOST_ERRORS = 20

Model = TypeVar("Model", bound=BaseModel)


@dataclass
class Service:
    """The shared state of the routes: submits evaluations and answers from them."""

    store: Store
    reader: Reader
    watch: Watch
    most: int
    most_losses: int = MOST_LOSSES

    def submit(self, caller: Caller, requests: list[EvaluationRequest]) -> list[StoredEvaluation]:
        """Queues all or none. Raises Refused."""
        return self._put(caller, self._read(requests))

    def submit_once(self, caller: Caller, requests: list[EvaluationRequest]) -> list[StoredEvaluation]:
        """As `submit`, but reuses equal work that this caller sent so before, unless it had no result."""
        items = self._read(requests)
        return self._put(
            caller, [replace(item, idempotency_key=self._newest_key(caller, item)) for item in items]
        )

    def _newest_key(self, caller: Caller, item: Submitted) -> str:
        """The idempotency key of equal work with a result or still open, else a new key."""
        for number in count():
            key = f"once:{item.request_sha256}:{number}"
            earlier = self.store.service.evaluations.with_key(caller.name, key)
            if earlier is None or earlier.state in OPEN:
                return key
            if Evaluated.of(answer(self.store, earlier)).reward is not None:
                return key
        raise AssertionError

    def _put(self, caller: Caller, items: list[Submitted]) -> list[StoredEvaluation]:
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

    def mine(self, caller: Caller, number: str) -> StoredEvaluation:
        """The caller's evaluation. Raises Refused if there is none."""
        evaluation = self.store.service.evaluations.get(number, caller.name)
        if evaluation is None:
            raise Refused(404, "unknown", f"there is no evaluation {number!r:.80}")
        return evaluation

    def answer(self, caller: Caller, number: str) -> dict[str, Any]:
        return answer(self.store, self.mine(caller, number))

    async def until_ended(self, evaluation: StoredEvaluation, seconds: float) -> None:
        """Returns when it has ended, or after so many seconds."""
        if evaluation.state in OPEN:
            await self.watch.ended(evaluation.id, seconds)

    def _read(self, requests: list[EvaluationRequest]) -> list[Submitted]:
        """Raises Refused, which lists what is wrong with each."""
        items, wrong = [], []
        for place, request in enumerate(requests):
            try:
                items.append(self.reader.read(request))
            except UsageError as error:
                wrong.append(f"evaluations[{place}]: {error}" if len(requests) > 1 else str(error))
        if wrong:
            raise Refused(422, "invalid", "; ".join(wrong[:MOST_ERRORS]))
        return items

    def _require_deadlines(self, caller: Caller, items: list[Submitted]) -> None:
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
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


def _caller(request: Request, _: Annotated[Any, Security(_SCHEME)]) -> Caller:
    caller = getattr(request.state, STATE)
    assert isinstance(caller, Caller), "AuthMiddleware admits nobody else"
    return caller


TheService = Annotated[Service, Depends(_service)]
TheCaller = Annotated[Caller, Depends(_caller)]
"""The caller, whose token `AuthMiddleware` has checked."""


def read(model: type[Model], raw: bytes) -> Model:
    """The body of a request. Raises Refused if it is no JSON, nested too deeply, or invalid."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            why = error.errors()[0]["msg"].removeprefix("Invalid JSON: ")
            raise Refused(400, "not_json", f"the body is not JSON: {why}") from None
        raise Refused(422, "invalid", explain(error, {"": "the body"})) from None


def validated(model: type[Model], **fields: Any) -> Model:
    """A record from the fields of another protocol. Raises Refused."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise Refused(422, "invalid", explain(error)) from None


def body_of(model: Any) -> dict[str, Any]:
    """The OpenAPI description of a body for `read`. `with_body_schemas` moves its `$defs`."""
    schema = TypeAdapter(model).json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def with_body_schemas(openapi: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI description, with the `$defs` of bodies among the components."""
    components = openapi.setdefault("components", {}).setdefault("schemas", {})
    for path in openapi["paths"].values():
        for operation in path.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            components |= body.get("schema", {}).pop("$defs", {})
    return openapi
