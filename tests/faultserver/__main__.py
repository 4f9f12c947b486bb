"""`python -m tests.faultserver SHARE SEED DELAY PIECES ANSWER [FAULT ...]`: prints its port, and serves.

A model named like a fault always gets that fault. `GET /counts` says:

- `requests`: how many came, and `asked`: how often each `Idempotency-Key` came,
- `answered`: how often each key got its whole answer, with `prompt_tokens` and `completion_tokens` of these,
- `in_flight` and `most_in_flight`.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.faultserver.answers import COMPLETION_TOKENS, PROMPT_TOKENS, Answer, Asked, reply, send
from tests.faultserver.faults import AT_RANDOM, FAULTS

KEY = "@KEY@"
"""In the answer's text it stands for the question's key: each question has another answer, and always the
same."""


class Server:
    """What it is told, and what it counted."""

    def __init__(
        self, share: float, seed: int, delay_s: float, pieces: int, text: str, faults: list[str]
    ) -> None:
        self.share, self.delay_s, self.pieces, self.text = share, delay_s, max(1, pieces), text
        self.faults = faults or list(AT_RANDOM)
        self.random = random.Random(seed)
        self.requests = self.in_flight = self.most_in_flight = 0
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, with one request after another."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while (request := await _request(reader)) is not None:
                await self._answer(writer, *request)
                if writer.is_closing():
                    break
                await writer.drain()
        writer.close()

    async def _answer(
        self, writer: asyncio.StreamWriter, path: str, headers: dict[str, str], body: Any
    ) -> None:
        if path.endswith("/counts"):
            reply(writer, "200 OK", json.dumps(self.counts()))
            return
        key = headers.get("idempotency-key", "")
        self.requests += 1
        self.asked[key] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        asked = Asked(path, body, self.text.replace(KEY, key[:12]))
        try:
            named = FAULTS.get(body.get("model"))
            if named is None and self.random.random() < self.share:
                named = FAULTS[self.random.choice(self.faults)]
            if named is not None:
                await named(writer, asked)
                return
            await send(writer, asked, Answer(asked.text), pieces=self.pieces, delay_s=self.delay_s)
            # Counted once the last byte is on its way: a client that is killed then was answered.
            await writer.drain()
            self.answered[key] += 1
        finally:
            self.in_flight -= 1

    def counts(self) -> dict[str, Any]:
        """All that was counted."""
        answers = sum(self.answered.values())
        return {
            "requests": self.requests,
            "asked": dict(self.asked),
            "answered": dict(self.answered),
            "prompt_tokens": answers * PROMPT_TOKENS,
            "completion_tokens": answers * COMPLETION_TOKENS,
            "in_flight": self.in_flight,
            "most_in_flight": self.most_in_flight,
        }


async def _request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], Any] | None:
    """Path, headers and body of the next request; None when the client hung up."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *rest = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    data = await reader.readexactly(int(headers.get("content-length", 0)))
    return first.split(" ")[1], headers, json.loads(data) if data else {}


async def main() -> None:
    share, seed, delay_s, pieces, answer, *faults = sys.argv[1:]
    text = Path(answer).read_text() if answer else "no code today"
    server = Server(float(share), int(seed), float(delay_s), int(pieces), text, faults)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=4096)
    print(listening.sockets[0].getsockname()[1], flush=True)
    async with listening:
        await listening.serve_forever()


asyncio.run(main())
