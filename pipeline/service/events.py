"""An evaluation's states as server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio.to_thread

from kernelproof.db.evaluation_records import OPEN
from kernelproof.service.waiting import Watch

SILENCE_S = 15.0
"""After so many seconds without news a comment is sent, so that nobody on the way closes the connection."""
LOOK_S = 1.0
"""Seconds between two looks whether a worker has taken it."""


async def events(watch: Watch, ask: Callable[[], dict[str, Any]]) -> AsyncIterator[str]:
    """One event for each state that is seen; the last one holds the result. Ends with the service, too."""
    state, silent = None, 0.0
    while True:
        said = await anyio.to_thread.run_sync(ask)
        if said["state"] != state:
            state, silent = said["state"], 0.0
            yield f"event: {state}\ndata: {json.dumps(said)}\n\n"
        elif silent >= SILENCE_S:
            silent = 0.0
            yield ": waiting\n\n"
        if state not in OPEN or watch.over:
            return
        await watch.ended(said["id"], LOOK_S)
        silent += LOOK_S
