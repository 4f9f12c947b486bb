"""Questions by a server's batch endpoint: collected, handed over in a file, answered within a day.

No task runs in the background. Of the questions that wait for a batch, one does what is to be done for all:
it waits until no more come, submits, and looks how far the server is. When it is cancelled, another goes on.
The openai package sends and fetches: https://platform.openai.com/docs/api-reference/batch
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar

import anyio
import anyio.to_thread

from kernelproof.errors import MachineError, ProviderError, ProviderFatal
from kernelproof.providers.body import MAX_BODY_BYTES, json_object, response_from_body, with_limit
from kernelproof.providers.endpoints import ENDPOINTS
from kernelproof.providers.pacing import at
from kernelproof.providers.protocol import AskEvent, BatchJournal, ProviderOptions, Question
from kernelproof.providers.server import Failure, ModelServer
from kernelproof.providers.server_errors import complaint_of_reply
from kernelproof.types import Response
from kernelproof.wording import counted

if TYPE_CHECKING:
    import openai


class BatchResults:
    """What a batch came to: a line for each question that was answered or failed, kept on disk."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="kernelproof-batch-")  # noqa: SIM115
        self._places: dict[str, tuple[int, int]] = {}
        """Start and size of each question's line."""
        self._answered: set[str] = set()
        self._end = 0

    def room(self) -> IO[bytes]:
        """Where to write further lines. What was written since the last `index` is gone."""
        self._file.seek(self._end)
        self._file.truncate()
        return self._file

    def index(self) -> None:
        """Looks where each question's line is among those that were written. Lines that are no results are
        passed over; of several for one question the first counts, and an answer before an error.
        """
        self._file.seek(self._end)
        while line := self._file.readline(MAX_BODY_BYTES):
            start, self._end = self._end, self._end + len(line)
            found = _entry(line)
            if found is None or (key := found["custom_id"]) in self._answered:
                continue
            answered = not found.get("error") and status_of(found) < 300
            if answered or key not in self._places:
                self._places[key] = start, len(line)
            if answered:
                self._answered.add(key)

    def entry(self, key: str) -> dict[str, Any] | None:
        """The line of a question, as JSON; None where there is none."""
        if key not in self._places:
            return None
        start, size = self._places[key]
        self._file.seek(start)
        return _entry(self._file.read(size))

    def unanswered(self, keys: Iterable[str]) -> list[str]:
        """Which of these questions have no answer here."""
        return [key for key in keys if key not in self._answered]

    def close(self) -> None:
        """Gives the disk's space back."""
        self._file.close()


def status_of(entry: dict[str, Any]) -> int:
    """The HTTP status of a result, 500 where it has none that makes sense."""
    response = entry.get("response")
    status = response.get("status_code") if isinstance(response, dict) else None
    return status if isinstance(status, int) and 200 <= status < 600 else 500


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("custom_id"), str) else None


T = TypeVar("T")

PATIENT_TRIES = 60
"""The number of failed questions for the state of a batch before it is given up: an hour or so."""
LABEL = "kernelproof"
"""The name, in a batch's metadata, under which our own name of it stands."""
PAGES, PAGE = 20, 100
"""Pages of the newest batches that are searched for one of ours, and batches on a page."""
_ABSENT = frozenset({404, 405, 410, 501})
"""Statuses by which a server says that it has no such thing."""


class BatchServer:
    """Calls that are tried again as long as that may help.

    They raise ProviderFatal where no batch can be made, and ProviderError where the server failed too long.
    """

    def __init__(self, server: ModelServer, retries: int) -> None:
        self.server, self._retries = server, retries

    async def upload(self, file: IO[bytes]) -> str:
        """The server's id of a file with questions."""

        async def work(client: openai.AsyncOpenAI) -> str:
            file.seek(0)
            questions = ("questions.jsonl", file, "application/jsonl")
            reply = await _present(client.files.with_raw_response.create(file=questions, purpose="batch"))
            if reply is None:
                raise ProviderFatal(
                    f"{self.server.name}: the server takes no files, so it has no batch endpoint, or the "
                    "base URL is wrong (most end in /v1); leave out --batch"
                )
            return _id(_object(reply))

        return await self._create(work, "the file of a batch")

    async def create(self, file_id: str, path: str, label: str) -> str:
        """The server's id of a new batch. It is made once, though the server's reply may be lost."""
        tried = False

        async def work(client: openai.AsyncOpenAI) -> str:
            nonlocal tried
            if tried and (found := await self._labelled(label, client)):
                return found
            tried = True
            endpoint: Any = path
            reply = await client.batches.with_raw_response.create(
                input_file_id=file_id, endpoint=endpoint, completion_window="24h", metadata={LABEL: label}
            )
            return _id(_object(reply))

        return await self._create(work, "a new batch")

    async def find(self, label: str) -> str | None:
        """The server's id of the batch with our name; None where there is none among the newest."""

        async def work(client: openai.AsyncOpenAI) -> str | None:
            return await self._labelled(label, client)

        return await self._call(work, "the list of batches", self._retries)

    async def look(self, batch_id: str, say: Callable[[Failure, float], None]) -> dict[str, Any] | None:
        """A batch as the server describes it; None where it knows none of that id.

        `say` hears why the server could not be asked, and after how many seconds it is asked again.
        """

        async def work(client: openai.AsyncOpenAI) -> dict[str, Any] | None:
            reply = await _present(client.batches.with_raw_response.retrieve(batch_id))
            return None if reply is None else _object(reply)

        return await self._call(work, f"batch {batch_id}", PATIENT_TRIES, say)

    async def download(self, file_id: str, results: BatchResults) -> None:
        """Adds the lines of a file to `results`; none where the server no longer has it.

        Raises MachineError where they cannot be kept: the disk is full, say.
        """

        async def fetch(client: openai.AsyncOpenAI) -> None:
            room = results.room()
            async with client.files.with_streaming_response.content(file_id) as reply:
                async for piece in reply.iter_bytes():
                    _keep(room, piece)
            _keep(room, b"\n")  # also where the last line has no end

        async def work(client: openai.AsyncOpenAI) -> None:
            await _present(fetch(client))

        await self._call(work, f"the answers in {file_id}", max(self._retries, 5))
        await anyio.to_thread.run_sync(results.index)

    async def _labelled(self, label: str, client: openai.AsyncOpenAI) -> str | None:
        after: Any = {}
        for _ in range(PAGES):
            reply = await _present(client.batches.with_raw_response.list(limit=PAGE, **after))
            data = _object(reply).get("data") if reply is not None else None
            entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
            for entry in entries:
                metadata = entry.get("metadata")
                if isinstance(metadata, Mapping) and metadata.get(LABEL) == label:
                    return _id(entry)
            if len(entries) < PAGE:
                return None
            after = {"after": _id(entries[-1])}
        return None

    async def _create(self, work: Callable[[openai.AsyncOpenAI], Awaitable[str]], what: str) -> str:
        """The id of what `work` makes. Raises ProviderFatal where trying again cannot help."""
        try:
            return await self._call(work, what, self._retries)
        except Failure as failure:
            if failure.retriable:
                raise
            raise ProviderFatal(str(failure)) from failure

    async def _call(
        self,
        work: Callable[[openai.AsyncOpenAI], Awaitable[T]],
        what: str,
        retries: int,
        say: Callable[[Failure, float], None] = lambda _, __: None,
    ) -> T:
        return await self.server.insist(lambda: self.server.attempt(work, what), retries, say)


async def _present(call: Awaitable[T]) -> T | None:
    """What `call` returns; None where the server has no such thing."""
    import openai

    try:
        return await call
    except openai.APIStatusError as error:
        if error.status_code not in _ABSENT:
            raise
        return None


def _keep(room: IO[bytes], piece: bytes) -> None:
    try:
        room.write(piece)
    except OSError as error:
        raise MachineError(
            f"the answers of a batch cannot be kept in the temporary directory: {error.strerror}; "
            "make space, or set TMPDIR, and run the same command again"
        ) from error


def _object(reply: Any) -> dict[str, Any]:
    return json_object(reply.text, "the server's answer")


def _id(reply: Mapping[str, Any]) -> str:
    """Raises ProviderError for an object without an id."""
    if not isinstance(reply.get("id"), str) or not reply["id"]:
        raise ProviderError(
            f"the server's answer names no id; its fields: {', '.join(map(str, reply))[:200]}"
        )
    return str(reply["id"])


WINDOW_S = 2.0
"""A batch is handed over when no new question came for so long and no answer is being judged,"""
LONGEST_S = 600.0
"""or so long after its first question, though answers are being judged that others may follow from,"""
MAX_QUESTIONS, MAX_BYTES = 50_000, 100 << 20
"""or when it holds so much: half of the bytes that OpenAI takes, and as many questions."""
FIRST_POLL_S, MAX_POLL_S = 5.0, 60.0
OVER = frozenset({"completed", "failed", "expired", "cancelled"})
"""States of a batch to which no more answers come."""
UNHEARD = "?"
"""Before our own name of a batch: the server was told to make it, and what it calls it is not known yet."""


@dataclass(eq=False)
class _Batch:
    """Questions that wait for the same thing."""

    stage: Literal["collecting", "looking", "submitting", "following"] = "collecting"
    waiting: dict[str, Question] = field(default_factory=dict)
    size: int = 0
    first: float = field(default_factory=time.monotonic)
    last: float = 0.0
    since: str = ""
    """When it was handed over, for people."""
    id: str = ""
    """The server's, or our own after `UNHEARD`; empty before that."""
    keys: Sequence[str] = ()
    resumed: bool = False
    """Another process submitted it."""
    results: BatchResults | None = None
    ended: str = ""
    """How it ended, in the server's words."""
    failure: ProviderError | ProviderFatal | None = None
    """Why it came to nothing here."""
    led: bool = False
    changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def full(self) -> bool:
        return len(self.waiting) >= MAX_QUESTIONS or self.size >= MAX_BYTES

    def tell(self, event: AskEvent) -> None:
        for question in list(self.waiting.values()):
            question.tell(event)


class ServerBatches:
    def __init__(
        self, options: ProviderOptions, batches: BatchServer, request: Callable[[Question], dict[str, Any]]
    ) -> None:
        """`request` makes the fields of a request."""
        self._batches, self._server = batches, batches.server
        self._name, self._base_url = self._server.name, self._server.url
        self._sampling, self._request = options.sampling, request
        self._path = ENDPOINTS[options.endpoint].path
        self._journal: BatchJournal | None = None
        self._collecting = _Batch()
        self._batch_of: dict[str, _Batch] = {}
        """Batches by the key of a question."""
        self._open: dict[str, _Batch] = {}
        """Those that are at the server, by id."""

    def keep_batches(self, journal: BatchJournal) -> None:
        """Reads and writes `journal` from now on."""
        self._journal = journal

    async def ask(self, question: Question) -> Response:
        """The answer, when the batch is over. Raises as `Provider.ask` does."""
        key = question.key
        if not key or key in self._batch_of:
            key = uuid.uuid4().hex
        self._join(key, question)
        try:
            while True:
                batch = self._batch_of[key]
                if batch.failure is not None:
                    raise _anew(batch.failure)
                if batch.results is not None:
                    await question.room()
                    return await self._answer(batch, batch.results, key)
                if batch.led:
                    await batch.changed.wait()
                else:
                    await self._lead(batch, question)
        finally:
            self._leave(key)

    def close(self) -> None:
        """Gives the disk's space back. Batches at the server stay there, and in the journal."""
        for batch in self._open.values():
            if batch.results is not None:
                batch.results.close()

    def _join(self, key: str, question: Question) -> None:
        if self._collecting.full or self._collecting.stage != "collecting":
            self._collecting = _Batch()
        batch = self._collecting
        batch.size += len(self._line(key, question))
        batch.last = time.monotonic()
        batch.waiting[key] = question
        self._batch_of[key] = batch
        latest = at(time.time() + batch.first + LONGEST_S - time.monotonic())
        said = f"questions are collected, handed over by {latest} UTC"
        question.tell(AskEvent("batched", note=said))

    def _leave(self, key: str) -> None:
        batch = self._batch_of.pop(key)
        batch.waiting.pop(key)
        if not batch.waiting:
            self._open.pop(batch.id, None)
            if batch.results is not None:
                batch.results.close()

    async def _lead(self, batch: _Batch, question: Question) -> None:
        """Does the next thing for all questions of a batch."""
        batch.led = True
        try:
            if batch.stage == "collecting":
                await self._collect(batch, question)
            elif batch.stage == "looking":
                await self._reunite(batch)
            elif batch.stage == "submitting":
                await self._submit(batch)
            else:
                await self._follow(batch, question)
        except (ProviderError, ProviderFatal) as error:
            batch.failure = error
            self._open.pop(batch.id, None)
        finally:
            batch.led = False
            changed, batch.changed = batch.changed, anyio.Event()
            changed.set()

    async def _collect(self, batch: _Batch, question: Question) -> None:
        """Waits for more questions, which may follow from answers that are being judged."""
        while not batch.full:
            now = time.monotonic()
            left = batch.last + WINDOW_S - now
            if left <= 0 and question.more_to_come():
                left = WINDOW_S
            left = min(left, batch.first + LONGEST_S - now)
            if left <= 0:
                break
            await anyio.sleep(left)
        batch.stage = "looking"

    async def _reunite(self, batch: _Batch) -> None:
        """Moves the questions that a server has already to the batch that they are in."""
        found = await self._noted("open_batches", self._name, self._base_url) or []
        for batch_id, keys in found:
            moved = [key for key in keys if key in batch.waiting]
            if not moved:
                continue
            target = self._open.get(batch_id)
            if target is None:
                stage: Literal["submitting", "following"] = "following"
                if batch_id.startswith(UNHEARD):
                    stage = "submitting"
                target = _Batch(stage, id=batch_id, keys=keys, resumed=True)
                self._open[batch_id] = target
            for key in moved:
                target.waiting[key] = batch.waiting.pop(key)
                self._batch_of[key] = target
                said = f"handed over by an earlier command: {batch_id.removeprefix(UNHEARD)}"
                target.waiting[key].tell(AskEvent("batched", note=said, batch=batch_id))
        batch.stage = "submitting"

    async def _submit(self, batch: _Batch) -> None:
        """Hands the questions over, unless the server has them though we did not hear its reply."""
        if batch.id:
            if found := await self._batches.find(batch.id.removeprefix(UNHEARD)):
                await self._submitted(batch, found)
                return
            await self._noted("closed", batch.id)
            self._open.pop(batch.id, None)
            batch.id = ""
        if not batch.waiting:
            return
        questions = dict(batch.waiting)
        with tempfile.TemporaryFile(prefix="kernelproof-batch-") as file:
            await anyio.to_thread.run_sync(self._write, file, questions)
            file_id = await self._batches.upload(file)
        label = uuid.uuid4().hex
        batch.keys, batch.id = tuple(questions), UNHEARD + label
        await self._noted("submitted", self._name, self._base_url, batch.id, list(questions))
        try:
            batch_id = await self._batches.create(file_id, self._path, label)
        except ProviderFatal:
            await self._noted("closed", batch.id)
            raise
        await self._submitted(batch, batch_id)

    async def _submitted(self, batch: _Batch, batch_id: str) -> None:
        ours, batch.id, batch.stage = batch.id, batch_id, "following"
        self._open.pop(ours, None)
        self._open[batch_id] = batch
        with anyio.CancelScope(shield=True):
            await self._noted("renamed", ours, batch_id)
        if not batch.resumed:
            batch.since = at(time.time())
        said = f"{counted(len(batch.keys), 'question')}{_handed_over(batch)} UTC: {batch_id}"
        batch.tell(AskEvent("batched", note=said, batch=batch_id))

    async def _follow(self, batch: _Batch, question: Question) -> None:
        """Waits until the batch is over, and takes what came of it. `question` hears how far it is."""
        pause = FIRST_POLL_S

        def say(how_far: str, wait_s: float, more: str) -> None:
            # The most important words stand first: a screen may be narrow.
            times = f"{_handed_over(batch)}, next look {at(time.time() + wait_s)} UTC"
            note = f"{how_far}{times}, {more}: {batch.id}"
            question.tell(AskEvent("batched", note=note, batch=batch.id))

        def failed(failure: Failure, wait_s: float) -> None:
            say("no look at the server", wait_s, str(failure))

        while True:
            state = await self._batches.look(batch.id, failed)
            if state is None:
                await self._unknown(batch)
                return
            if state.get("status") in OVER:
                break
            batch.since = _since(state) or batch.since
            say(_answered(state), pause, str(state.get("status")))
            await anyio.sleep(pause)
            pause = min(MAX_POLL_S, 1.5 * pause)
        results = BatchResults()
        for name in ("output_file_id", "error_file_id"):
            if isinstance(state.get(name), str) and state[name]:
                await self._batches.download(state[name], results)
        if unanswered := results.unanswered(batch.keys):
            await self._noted("closed", batch.id, unanswered)
        batch.ended = f"batch {batch.id} {_ended(state)}"
        batch.results = results
        # They are paid for: the failure of one must not end the others' asking.
        note = f"answers are here, read as they can be judged, {_ended(state)}: {batch.id}"
        batch.tell(AskEvent("arrived", note=note, batch=batch.id))

    async def _unknown(self, batch: _Batch) -> None:
        """A batch of another process that is gone is submitted anew, as far as it is still asked for."""
        await self._noted("closed", batch.id)
        if not batch.resumed:
            raise ProviderError(f"{self._name}: the server does not know batch {batch.id}, which it made")
        self._open.pop(batch.id, None)
        batch.id, batch.stage, batch.resumed = "", "submitting", False

    async def _answer(self, batch: _Batch, results: BatchResults, key: str) -> Response:
        """What came of one question. Raises as if it had been asked alone."""

        async def read(_: openai.AsyncOpenAI) -> Response:
            entry = results.entry(key)
            if entry is None:
                raise ProviderError(f"{batch.ended}, without an answer")
            response = entry.get("response")
            if not isinstance(response, Mapping):
                raise ProviderError(_message(entry.get("error")))
            body, request_id = response.get("body"), response.get("request_id")
            if entry.get("error") or status_of(entry) >= 300:
                said = json.dumps(entry.get("error") or body).encode()
                raise self._server.failure(complaint_of_reply(status_of(entry), "", said), self._sampling)
            if not isinstance(body, Mapping):
                raise ProviderError(f"{batch.ended}, with an answer that is not JSON")
            answer = response_from_body(body, request_id=request_id if isinstance(request_id, str) else None)
            return with_limit(answer, self._request(batch.waiting[key]))

        return await self._server.insist(lambda: self._server.attempt(read, batch.id), retries=0)

    def _write(self, file: IO[bytes], questions: Mapping[str, Question]) -> None:
        for key, question in questions.items():
            file.write(self._line(key, question))
        file.flush()

    def _line(self, key: str, question: Question) -> bytes:
        body = {name: value for name, value in self._request(question).items() if name != "stream"}
        entry = {"custom_id": key, "method": "POST", "url": self._path, "body": body}
        return json.dumps(entry).encode() + b"\n"

    async def _noted(self, method: str, *facts: object) -> Any:
        if self._journal is None:
            return None
        return await anyio.to_thread.run_sync(partial(getattr(self._journal, method), *facts))


def _anew(error: ProviderError | ProviderFatal) -> ProviderError | ProviderFatal:
    """An error for each question: one that is raised in many tasks would collect all their tracebacks."""
    if isinstance(error, ProviderError):
        return error.again(str(error))
    return ProviderFatal(str(error))


def _answered(state: Mapping[str, Any]) -> str:
    """`3 of 10 answered`."""
    counts = state.get("request_counts")
    if not isinstance(counts, Mapping) or not counts.get("total"):
        return "not begun"
    return f"{counts.get('completed', 0)} of {counts['total']} answered"


def _handed_over(batch: _Batch) -> str:
    return f", since {batch.since}" if batch.since else ""


def _since(state: Mapping[str, Any]) -> str:
    """When a batch was made, by the server; empty where it does not say so."""
    made = state.get("created_at")
    if not isinstance(made, int | float) or not 0 < made < 1 << 35:
        return ""
    return at(made)


def _ended(state: Mapping[str, Any]) -> str:
    """`failed: the file is too large`."""
    errors = state.get("errors")
    data = errors.get("data") if isinstance(errors, Mapping) else None
    said = "; ".join(map(_message, data[:3])) if isinstance(data, list) else ""
    return f"{state['status']}: {said}" if said else str(state["status"])


def _message(error: object) -> str:
    message = error.get("message") if isinstance(error, Mapping) else None
    return str(message or error)
