"""The files and batches of a server, by the openai package: https://platform.openai.com/docs/api-reference/batch"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import IO, Any, TypeVar

import anyio

from kernelproof.errors import MachineError, ProviderError, ProviderFatal
from kernelproof.providers.attempts import Attempts, Failure
from kernelproof.providers.batch_results import BatchResults
from kernelproof.providers.connections import Connections
from kernelproof.providers.sse import json_object
from kernelproof.providers.waiting import backoff

T = TypeVar("T")

PATIENT_TRIES = 60
"""The number of failed questions for the state of a batch before it is given up: an hour or so."""
LABEL = "kernelproof"
"""The name, in a batch's metadata, under which our own name of it stands."""
PAGES, PAGE = 20, 100
"""Pages of the newest batches that are searched for one of ours, and batches on a page."""


class BatchServer:
    """Calls that are tried again as long as that may help.

    They raise ProviderFatal where no batch can be made, and ProviderError where the server failed too long.
    """

    def __init__(self, name: str, retries: int, attempts: Attempts, connections: Connections) -> None:
        self.attempts = attempts
        """For the requests inside a batch: their errors mean what they would mean alone."""
        self._name, self._retries, self._connections = name, retries, connections

    async def upload(self, file: IO[bytes]) -> str:
        """The server's id of a file with questions."""
        import openai

        async def work() -> str:
            file.seek(0)
            try:
                with self._connections.client() as client:
                    reply = await client.files.with_raw_response.create(
                        file=("questions.jsonl", file, "application/jsonl"), purpose="batch"
                    )
            except openai.APIStatusError as error:
                if error.status_code not in (404, 405, 501):
                    raise
                raise ProviderFatal(
                    f"{self._name}: the server takes no files (HTTP {error.status_code}), so it has no batch "
                    "endpoint, or the base URL is wrong (most end in /v1); leave out --batch"
                ) from error
            return _id(reply.text)

        return await self._insist(work, "the file of a batch", self._retries, refusal=ProviderFatal)

    async def create(self, file_id: str, path: str, label: str) -> str:
        """The server's id of a new batch. It is made once, though the server's reply may be lost."""
        tried = False

        async def work() -> str:
            nonlocal tried
            if tried and (found := await self._found(label)):
                return found
            tried = True
            endpoint: Any = path
            told = {LABEL: label}
            with self._connections.client() as client:
                reply = await client.batches.with_raw_response.create(
                    input_file_id=file_id, endpoint=endpoint, completion_window="24h", metadata=told
                )
            return _id(reply.text)

        return await self._insist(work, "a new batch", self._retries, refusal=ProviderFatal)

    async def find(self, label: str) -> str | None:
        """The server's id of the batch with our name; None where there is none among the newest."""
        return await self._insist(lambda: self._found(label), "the list of batches", self._retries)

    async def look(self, batch_id: str, say: Callable[[str, float], None]) -> dict[str, Any] | None:
        """A batch as the server describes it; None where it knows none of that id.

        `say` hears why the server could not be asked, and after how many seconds it is asked again.
        """
        import openai

        async def work() -> dict[str, Any] | None:
            try:
                with self._connections.client() as client:
                    reply = await client.batches.with_raw_response.retrieve(batch_id)
            except openai.APIStatusError as error:
                if error.status_code != 404:
                    raise
                return None
            return json_object(reply.text, "the server's answer")

        return await self._insist(work, f"batch {batch_id}", PATIENT_TRIES, say=say)

    async def download(self, file_id: str, results: BatchResults) -> None:
        """Adds the lines of a file to `results`; none where the server no longer has it.

        Raises MachineError where they cannot be kept: the disk is full, say.
        """
        import openai

        async def work() -> None:
            room = results.room()
            try:
                with self._connections.client() as client:
                    async with client.files.with_streaming_response.content(file_id) as reply:
                        async for piece in reply.iter_bytes():
                            _keep(room, piece)
            except openai.APIStatusError as error:
                if error.status_code not in (404, 410):
                    raise
                return
            _keep(room, b"\n")  # also where the last line has no end

        await self._insist(work, f"the answers in {file_id}", max(self._retries, 5))
        await anyio.to_thread.run_sync(results.index)

    async def _found(self, label: str) -> str | None:
        import openai

        after: Any = {}
        for _ in range(PAGES):
            try:
                with self._connections.client() as client:
                    reply = await client.batches.with_raw_response.list(limit=PAGE, **after)
            except openai.APIStatusError as error:
                if error.status_code in (404, 405, 501):
                    return None
                raise
            data = json_object(reply.text, "the server's answer").get("data")
            entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
            for entry in entries:
                metadata = entry.get("metadata")
                if isinstance(metadata, Mapping) and metadata.get(LABEL) == label:
                    return _id_of(entry)
            if len(entries) < PAGE:
                return None
            after = {"after": _id_of(entries[-1])}
        return None

    async def _insist(
        self,
        work: Callable[[], Awaitable[T]],
        what: str,
        retries: int,
        refusal: type[ProviderError] | type[ProviderFatal] = ProviderError,
        say: Callable[[str, float], None] = lambda _, __: None,
    ) -> T:
        """What `work` returns at last. Raises `refusal` where trying again cannot help."""
        failures = 0
        while True:
            outcome = await self.attempts.attempt(work, what, {})
            if not isinstance(outcome, Failure):
                return outcome
            error, verdict = outcome.error, outcome.verdict
            if verdict.fatal is not None:
                raise ProviderFatal(f"{self._name}: {verdict.fatal}") from error
            if not verdict.retry:
                raise refusal(str(error)) from error
            failures += 1
            if failures > retries:
                raise ProviderError(str(error)) from error
            pause = outcome.after_s or backoff(failures - 1)
            say(str(error), pause)
            await anyio.sleep(pause)


def _keep(room: IO[bytes], piece: bytes) -> None:
    try:
        room.write(piece)
    except OSError as error:
        raise MachineError(
            f"the answers of a batch cannot be kept in the temporary directory: {error.strerror}; "
            "make space, or set TMPDIR, and run the same command again"
        ) from error


def _id(text: str) -> str:
    return _id_of(json_object(text, "the server's answer"))


def _id_of(found: Mapping[str, Any]) -> str:
    """Raises ProviderError for an object without an id."""
    if not isinstance(found.get("id"), str) or not found["id"]:
        raise ProviderError(
            f"the server's answer names no id; its fields: {', '.join(map(str, found))[:200]}"
        )
    return str(found["id"])
