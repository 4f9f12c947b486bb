"""A client of the evaluation service: `Client` for threads, `AsyncClient` for event loops.

    from kernelproof.client import Candidate, Client

    with Client("http://127.0.0.1:8400") as client:
        found = client.evaluate(Candidate(source, "level1/2"))
        found.score, found.feedback

A request that is lost on the way is sent again under the same idempotency key: nothing is evaluated twice.
"""

from __future__ import annotations

import math
import os
import random
import re
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import anyio
import httpx2
from anyio.from_thread import BlockingPortal

from kernelproof.errors import MachineError, UsageError
from kernelproof.providers.pacing import retry_after
from kernelproof.wording import encodable

URL = "KERNELPROOF_URL"
TOKEN = "KERNELPROOF_TOKEN"
WAIT_S = 60.0
"""Seconds that one request waits for a result; then it asks again."""
AT_ONCE = 64
"""Requests that wait at the same time."""
BATCH = 256
"""Most evaluations that are sent in one request."""
BATCH_BYTES = 16 << 20
"""Most bytes of sources in one request, unless one alone has more."""
PATIENCE_S = 600.0
"""How long a service that is full, restarted or away is asked again."""
FIRST_PAUSE_S = 0.2
"""Before a request is sent again for the first time; then it doubles."""
_LATER = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Candidate:
    """A candidate to be evaluated."""

    source: str
    """A program, or a model's answer that holds one."""
    problem: str | None = None
    """Id or name of a problem of the service's suite."""
    reference: str | None = None
    """A problem's source in its place, where the service takes such."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the verification: `backend`, `rigor`, `trials`, `measure` ..."""
    priority: int = 0
    deadline_s: float | None = None
    """Seconds after which it is not begun any more."""
    label: str | None = None
    """Name of the run that the result is stored under."""
    reuse: bool = False
    """Whether the stored result of equal work may be taken."""
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """The idempotency key: the same one gets the same evaluation."""

    def body(self) -> dict[str, Any]:
        """As the service takes it. Lone surrogates, which no request can carry, are replaced."""
        given = {**vars(self), "source": encodable(self.source), "idempotency_key": self.key}
        return {name: value for name, value in given.items() if value is not None and name != "key"}


@dataclass(frozen=True)
class Evaluated:
    """How an evaluation ended, or how far it is."""

    id: str
    state: str
    """`queued`, `building`, `built`, `running`, `done`, `failed`, `expired` or `cancelled`."""
    status: str | None
    """`correct`, `wrong_output`, `build_error` ...; None where there is no verdict."""
    score: float | None
    """The lower end of the speedup's interval, 0 for a program that is not correct; None where nothing is
    known of it, because the service failed or did not judge it: such a sample is to be left out."""
    feedback: str | None
    """The evidence in the words of a repair prompt."""
    reason: str | None
    raw: dict[str, Any]
    """All that the service said."""

    @property
    def correct(self) -> bool:
        """Whether the program computes the same."""
        return self.status == "correct"

    @property
    def reward(self) -> float | None:
        """For a trainer: 0 for a wrong program, 1 for a right one, 1 + log2 of its score for a faster one.

        None where `score` is.
        """
        if self.score is None or not self.correct:
            return self.score
        return 1.0 + max(0.0, math.log2(self.score)) if self.score > 0 else 1.0

    @property
    def failed(self) -> bool:
        """Whether the service failed at it: no fault of the candidate's."""
        return bool(self.raw["infrastructure"])

    @property
    def busy(self) -> str:
        """What shows that the service's machine was busy meanwhile, so that noise may have lowered the score;
        empty where it was quiet enough, and where nothing was timed."""
        return (self.raw["result"] or {}).get("busy") or ""

    @property
    def ended(self) -> bool:
        """Whether it will not change any more."""
        return self.state not in ("queued", "building", "built", "running")

    @classmethod
    def of(cls, said: dict[str, Any]) -> Evaluated:
        """From the service's answer."""
        result = said["result"] or {}
        return cls(
            id=said["id"],
            state=said["state"],
            status=result.get("status"),
            score=result.get("score"),
            feedback=result.get("feedback"),
            reason=result.get("reason") or said["error"],
            raw=said,
        )


class AsyncClient:
    """The service at `url`, or at KERNELPROOF_URL; `token`, or KERNELPROOF_TOKEN, is the caller's."""

    def __init__(
        self, url: str | None = None, token: str | None = None, *, patience_s: float = PATIENCE_S
    ) -> None:
        """`patience_s`: how long a service that is full or away is asked again.

        Raises UsageError without a URL.
        """
        address = url or os.environ.get(URL) or ""
        if not re.match(r"https?://[^/]", address):
            given = f"not {address!r}" if address else f"or set {URL}"
            raise UsageError(f"where is the service? give its URL, http://HOST:PORT, {given}")
        secret = token or os.environ.get(TOKEN)
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self._patience_s = patience_s
        self._http = httpx2.AsyncClient(
            base_url=address.rstrip("/"),
            headers=headers,
            timeout=httpx2.Timeout(30.0, read=WAIT_S + 30.0),
            limits=httpx2.Limits(max_connections=2 * AT_ONCE),
        )

    async def evaluate(self, candidate: Candidate) -> Evaluated:
        """The end of one evaluation. Raises as `evaluate_many`."""
        return (await self.evaluate_many([candidate]))[0]

    async def evaluate_many(self, candidates: Iterable[Candidate], *, again: int = 0) -> list[Evaluated]:
        """The ends of all evaluations, in the order of the candidates.

        `again`: how often those are sent again at which the service failed.

        Raises UsageError for a request that the service refuses, MachineError where it cannot be reached.
        """
        chosen = list(candidates)
        ended = await self._ended(await self.submit(chosen))
        for _ in range(again):
            failed = [number for number, each in enumerate(ended) if each.failed]
            anew = [replace(chosen[number], key=uuid.uuid4().hex) for number in failed]
            for number, found in zip(failed, await self._ended(await self.submit(anew)), strict=True):
                ended[number] = found
        return ended

    async def submit(self, candidates: Iterable[Candidate]) -> list[Evaluated]:
        """Puts them into the queue, and does not wait for their ends."""
        sent: list[Evaluated] = []
        for bodies in _batches(candidates):
            sent += await self._send(bodies)
        return sent

    async def _send(self, bodies: list[dict[str, Any]]) -> list[Evaluated]:
        """One request; more, where the queue has no place for so many at once."""
        try:
            said = await self._ask(
                "POST", "/v1/evaluations", json={"evaluations": bodies}, at_once=len(bodies) > 1
            )
        except _Full:
            half = len(bodies) // 2
            return await self._send(bodies[:half]) + await self._send(bodies[half:])
        found = [_evaluated(each) for each in said.get("evaluations", ())]
        if len(found) != len(bodies):
            raise MachineError(f"{self._http.base_url} is no evaluation service: its answer has other fields")
        return found

    async def _ended(self, sent: list[Evaluated]) -> list[Evaluated]:
        """Their ends. Raises the first error alone, not as a group."""
        ended, places, errors = list(sent), anyio.Semaphore(AT_ONCE), list[UsageError | MachineError]()

        async def wait(number: int) -> None:
            async with places:
                try:
                    ended[number] = await self.wait(sent[number].id)
                except (UsageError, MachineError) as error:
                    errors.append(error)
                    group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for number, each in enumerate(sent):
                if not each.ended:
                    group.start_soon(wait, number)
        if errors:
            raise errors[0]
        return ended

    async def wait(self, number: str) -> Evaluated:
        """The end of an evaluation."""
        path = f"/v1/evaluations/{number}"
        while True:
            try:
                found = _evaluated(await self._ask("GET", path, params={"wait": WAIT_S}, at_once=True))
            except _Full:  # as many requests of this caller wait as may: a look now and then will do
                await anyio.sleep(random.uniform(1.0, 2.0))
                found = await self.get(number)
            if found.ended:
                return found

    async def get(self, number: str) -> Evaluated:
        """The evaluation as it is now."""
        return _evaluated(await self._ask("GET", f"/v1/evaluations/{number}"))

    async def cancel(self, number: str) -> Evaluated:
        """Cancels an evaluation, unless it has ended."""
        return _evaluated(await self._ask("DELETE", f"/v1/evaluations/{number}"))

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _ask(self, method: str, path: str, *, at_once: bool = False, **request: Any) -> dict[str, Any]:
        """The answer, asked for again while the service is full or away.

        `at_once`: raises _Full where it is full, in place of waiting.
        """
        pause, until = FIRST_PAUSE_S, anyio.current_time() + self._patience_s
        while True:
            try:
                answer = await self._http.request(method, path, **request)
            except httpx2.RequestError as error:
                trouble = f"{self._http.base_url} cannot be reached: {error or type(error).__name__}"
                wait = pause
            else:
                if at_once and answer.status_code in (413, 429):
                    raise _Full
                if answer.status_code not in _LATER:
                    return _read(answer)
                trouble, asked = _message(answer), retry_after(answer.headers)
                wait = pause if asked is None else max(asked, FIRST_PAUSE_S)
            if anyio.current_time() + wait > until:
                raise MachineError(trouble)
            await anyio.sleep(wait * random.uniform(1.0, 1.2))
            pause = min(10.0, pause * 2)


class Client:
    """The same for threads, each call of which waits for its answer."""

    def __init__(
        self, url: str | None = None, token: str | None = None, *, patience_s: float = PATIENCE_S
    ) -> None:
        """As `AsyncClient`."""
        self._client = AsyncClient(url, token, patience_s=patience_s)
        found: Future[BlockingPortal] = Future()
        # A daemon: a process whose client was not closed, as in a reward function, ends nevertheless.
        self._loop = threading.Thread(target=anyio.run, args=(_loop, found), daemon=True)
        self._loop.start()
        self._portal = found.result()

    def evaluate(self, candidate: Candidate) -> Evaluated:
        """The end of one evaluation. Raises as `AsyncClient.evaluate_many`."""
        return self._portal.call(self._client.evaluate, candidate)

    def evaluate_many(self, candidates: Sequence[Candidate], *, again: int = 0) -> list[Evaluated]:
        """As `AsyncClient.evaluate_many`."""
        return self._portal.call(partial(self._client.evaluate_many, candidates, again=again))

    def submit(self, candidates: Sequence[Candidate]) -> list[Evaluated]:
        """Puts them into the queue, and does not wait for their ends."""
        return self._portal.call(self._client.submit, candidates)

    def wait(self, number: str) -> Evaluated:
        """The end of an evaluation."""
        return self._portal.call(self._client.wait, number)

    def get(self, number: str) -> Evaluated:
        """The evaluation as it is now."""
        return self._portal.call(self._client.get, number)

    def cancel(self, number: str) -> Evaluated:
        """Cancels an evaluation, unless it has ended."""
        return self._portal.call(self._client.cancel, number)

    def close(self) -> None:
        """Closes the connections."""
        self._portal.call(self._client.aclose)
        self._portal.call(self._portal.stop)
        self._loop.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _loop(found: Future[BlockingPortal]) -> None:
    """Is the loop of a `Client` until it is closed."""
    async with BlockingPortal() as portal:
        found.set_result(portal)
        await portal.sleep_until_stopped()


class _Full(Exception):
    """The queue has no place for so many evaluations."""


def _batches(candidates: Iterable[Candidate]) -> Iterator[list[dict[str, Any]]]:
    """Bodies that go into one request each."""
    batch, size = list[dict[str, Any]](), 0
    for each in candidates:
        more = len(each.source) + len(each.reference or "")
        if batch and (len(batch) == BATCH or size + more > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each.body())
        size += more
    if batch:
        yield batch


def _evaluated(said: Any) -> Evaluated:
    try:
        return Evaluated.of(said)
    except (KeyError, TypeError, AttributeError):
        raise MachineError("what answers is no evaluation service: its answer has other fields") from None


def _read(answer: httpx2.Response) -> dict[str, Any]:
    if answer.is_success:
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise MachineError(f"{answer.url} is no evaluation service: its answer is no JSON object")
        return found
    if answer.status_code < 500:
        raise UsageError(_message(answer))
    raise MachineError(_message(answer))


def _message(answer: httpx2.Response) -> str:
    """What a refusal says."""
    try:
        said = str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        said = answer.text[:200]
    return f"the service answers {answer.status_code}: {said}"
