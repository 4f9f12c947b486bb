"""A model's server that fails as servers do, in a process of its own; `start` starts one.

It speaks Chat Completions and Responses, streaming and not, and counts: questions by their `Idempotency-Key`,
answers that were sent whole, and the tokens of these. `faults.py` lists what it can do wrong.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class FaultServer:
    """The running server."""

    url: str
    """Its base URL."""

    def counts(self) -> dict[str, Any]:
        """What it counted, see `tests/faultserver/__main__.py`."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"{self.url.removesuffix('/v1')}/counts", timeout=60) as reply:
            found: dict[str, Any] = json.load(reply)
        return found


@contextmanager
def start(
    *,
    share: float = 0.0,
    faults: Sequence[str] = (),
    seed: int = 0,
    delay_s: float = 0.0,
    pieces: int = 5,
    answer: Path | None = None,
) -> Iterator[FaultServer]:
    """Runs a server until the block ends.

    `share` of the requests get one of `faults` (all that have no long wait, where none is named). An answer
    takes `delay_s` seconds and comes in so many pieces. Its text is that of the file `answer`, with the
    question's key for `@KEY@`.
    """
    command = [sys.executable, "-m", "tests.faultserver", str(share), str(seed), str(delay_s), str(pieces)]
    command += [str(answer or ""), *faults]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
    assert process.stdout is not None
    try:
        yield FaultServer(f"http://127.0.0.1:{int(process.stdout.readline())}/v1")
    finally:
        process.terminate()
        process.communicate()
