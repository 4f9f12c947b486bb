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
import uuid
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import anyio
import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal

from kernelproof.errors import MachineError, UsageError

URL = "KERNELPROOF_URL"
TOKEN = "KERNELPROOF_TOKEN"
WAIT_S = 60.0
"""Seconds that one request waits for a result; then it asks again."""
AT_ONCE = 64
"""Requests that wait at the same time."""
BATCH = 256
"""Evaluations that are sent in one request."""
PATIENCE_S = 600.0
"""How long a service that is full, restarted or away is asked again."""
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
        """As the service takes it."""
        given = {
            "problem": self.problem,
            "reference": self.reference,
            "source": self.source,
            "settings": self.settings,
            "priority": self.priority,
            "deadline_s": self.deadline_s,
            "label": self.label,
            "reuse": self.reuse,
            "idempotency_key": self.key,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Evaluated:
    """How an evaluation ended, or how far it is."""

    id: str
    state: str
    """`queued`, `running`, `done`, `failed`, `expired` or `cancelled`."""
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
    def ended(self) -> bool:
        """Whether it will not change any more."""
        return self.state not in ("queued", "running")

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
        address = url or os.environ.get(URL)
        if not address:
            raise UsageError(f"where is the service? give its URL, or set {URL}=http://HOST:PORT")
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

    async def evaluate_many(self, candidates: Iterable[Candidate]) -> list[Evaluated]:
        """The ends of all evaluations, in the order of the candidates.

        Raises UsageError for a request that the service refuses, MachineError where it cannot be reached.
        """
        sent = await self.submit(candidates)
        ended = list(sent)
        places = anyio.Semaphore(AT_ONCE)

        async def wait(number: int) -> None:
            async with places:
                ended[number] = await self.wait(sent[number].id)

        async with anyio.create_task_group() as group:
            for number, each in enumerate(sent):
                if not each.ended:
                    group.start_soon(wait, number)
        return ended

    async def submit(self, candidates: Iterable[Candidate]) -> list[Evaluated]:
        """Puts them into the queue, and does not wait for their ends."""
        chosen, sent = list(candidates), list[Evaluated]()
        for start in range(0, len(chosen), BATCH):
            bodies = [each.body() for each in chosen[start : start + BATCH]]
            said = await self._ask("POST", "/v1/evaluations", json={"evaluations": bodies})
            sent += [Evaluated.of(each) for each in said["evaluations"]]
        return sent

    async def wait(self, number: str) -> Evaluated:
        """The end of an evaluation."""
        while True:
            said = await self._ask("GET", f"/v1/evaluations/{number}", params={"wait": WAIT_S})
            found = Evaluated.of(said)
            if found.ended:
                return found

    async def get(self, number: str) -> Evaluated:
        """The evaluation as it is now."""
        return Evaluated.of(await self._ask("GET", f"/v1/evaluations/{number}"))

    async def cancel(self, number: str) -> Evaluated:
        """Cancels an evaluation, unless it has ended."""
        return Evaluated.of(await self._ask("DELETE", f"/v1/evaluations/{number}"))

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _ask(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """The answer, asked for again while the service is full or away."""
        pause, until = 0.2, anyio.current_time() + self._patience_s
        while True:
            try:
                answer = await self._http.request(method, path, **request)
            except httpx2.TransportError as error:
                trouble, wait = (
                    f"{self._http.base_url} cannot be reached: {error or type(error).__name__}",
                    pause,
                )
            else:
                if answer.status_code not in _LATER:
                    return _read(answer)
                trouble, wait = _message(answer), float(answer.headers.get("retry-after", pause))
            if anyio.current_time() + wait > until:
                raise MachineError(trouble)
            await anyio.sleep(wait * random.uniform(0.8, 1.2))
            pause = min(10.0, pause * 2)


class Client:
    """The same for threads, each call of which waits for its answer."""

    def __init__(
        self, url: str | None = None, token: str | None = None, *, patience_s: float = PATIENCE_S
    ) -> None:
        """As `AsyncClient`."""
        self._stack = ExitStack()
        self._portal: BlockingPortal = self._stack.enter_context(start_blocking_portal())
        try:
            self._client = AsyncClient(url, token, patience_s=patience_s)
        except BaseException:
            self._stack.close()
            raise

    def evaluate(self, candidate: Candidate) -> Evaluated:
        """The end of one evaluation. Raises as `AsyncClient.evaluate_many`."""
        return self._portal.call(self._client.evaluate, candidate)

    def evaluate_many(self, candidates: Sequence[Candidate]) -> list[Evaluated]:
        """The ends of all evaluations, in the order of the candidates."""
        return self._portal.call(self._client.evaluate_many, candidates)

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
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read(answer: httpx2.Response) -> dict[str, Any]:
    if answer.is_success:
        found: dict[str, Any] = answer.json()
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
