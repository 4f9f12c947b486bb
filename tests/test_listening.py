"""Sockets that servers listen at."""

from __future__ import annotations

import asyncio
import socket

from kernelproof.listening import listening_at

HOST = "127.0.0.1"


def test_an_answer_is_sent_at_once_over_a_kept_connection() -> None:
    """asyncio turns Nagle's algorithm off only for sockets that name their protocol. Otherwise the body of an
    answer waits until the caller's system acknowledges the head, up to 40 ms."""
    assert asyncio.run(_sends_at_once())


async def _sends_at_once() -> bool:
    at_once: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def on_connect(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = writer.get_extra_info("socket")
        at_once.set_result(found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with listening_at(HOST, 0) as listening:
        server = await asyncio.start_server(on_connect, sock=listening)
        async with server:
            _, writer = await asyncio.open_connection(HOST, listening.getsockname()[1])
            writer.close()
            return bool(await at_once)
