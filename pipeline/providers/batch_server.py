"""The files and batches of a server, by the openai package: https://platform.openai.com/docs/api-reference/batch"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import IO, TYPE_CHECKING, Any, TypeVar

import anyio.to_thread

from kernelproof.errors import MachineError, ProviderError, ProviderFatal
from kernelproof.providers.body import MAX_BODY_BYTES, json_object
from kernelproof.providers.server import Failure, ModelServer

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
