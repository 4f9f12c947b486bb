"""Callers with many requests in flight, over connections that they keep.

Written on sockets: a whole HTTP client takes more of the cores than the service that is measured.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answered:
    """One request and its answer, with the Unix times of both."""

    number: int
    sent: float
    answered: float
    said: dict[str, Any]


class Connection:
    """One connection to the service, for one request at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and body of the answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        return int(lines[0].split()[1]), await reader.readexactly(length)

    async def close(self) -> None:
        """Closes it."""
        if self._streams is not None:
            self._streams[1].close()


async def send_all(
    host: str, port: int, bodies: Sequence[dict[str, Any]], in_flight: int, delays: Sequence[float]
) -> list[Answered]:
    """Sends each body and waits for its end, `in_flight` at a time.

    `delays`: after so many seconds each of the callers begins; then it sends the next when one is answered.
    """
    rest = iter(enumerate(json.dumps(body).encode() for body in bodies))
    done: list[Answered] = []

    async def caller(delay: float) -> None:
        await asyncio.sleep(delay)
        connection = Connection(host, port)
        for number, body in _drawn(rest):
            sent = time.time()
            status, raw = await connection.ask("POST", "/v1/evaluations?wait=300", body)
            answered = time.time()
            said = json.loads(raw)
            assert status == 200, (status, said)
            done.append(Answered(number, sent, answered, said))
        await connection.close()

    await asyncio.gather(*(caller(delay) for delay in delays[:in_flight]))
    return done


def _drawn(rest: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    yield from rest
