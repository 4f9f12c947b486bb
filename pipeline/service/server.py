"""The HTTP server of the service: it ends in order while callers wait."""

from __future__ import annotations

import logging
import socket

from fastapi import FastAPI

from kernelproof.http_server import HttpServer
from kernelproof.service.waiting import Watch

GRACE_S = 2
"""Seconds that answers which are under way have when the server ends."""


class Server(HttpServer):
    """Answers all who wait, with what is known by then, before it waits for the ends of answers."""

    def __init__(self, app: FastAPI, watch: Watch) -> None:
        super().__init__(app, log_level="warning", timeout_graceful_shutdown=GRACE_S)
        self._watch = watch

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the long polls and the events that go on by themselves; then as uvicorn does."""
        self._watch.end()
        # It tells at length of each answer that is cut off because its caller does not read.
        logging.getLogger("uvicorn.error").disabled = True
        await super().shutdown(sockets)
