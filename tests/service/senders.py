"""Callers who send candidates all the time, and wait for what became of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count

from kernelproof.client import Candidate, Client, Evaluated
from tests.cli import material

SENDERS, BATCH = 3, 8
"""Callers, each of which sends so many and waits for all of them before it sends more."""
NEW = 48
"""Of so many candidates one is new, and has to be compiled and verified. The others were built before."""
LIMIT_S = 300.0
"""So long nothing may happen before the run is given up."""
PATIENCE_S = 7200.0
"""So long a caller asks again: the service that it asks may be killed again before each answer."""
KNOWN = {
    "correct": material.right("known"),
    "wrong_output": material.wrong("known"),
    "build_error": material.uncompilable("known"),
    "no_code": "an answer that holds no program",
}


class Senders:
    """Callers in threads of their own, who send until they are told to end."""

    def __init__(self, urls: list[str]) -> None:
        self._numbers = count()
        self._ended: list[tuple[str, str]] = []
        self._stop, self._lock = threading.Event(), threading.Lock()
        self.trouble: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._send, args=(urls[number % len(urls)],), daemon=True)
            for number in range(SENDERS)
        ]
        for thread in self._threads:
            thread.start()

    def ended(self) -> list[tuple[str, str]]:
        """Ends after the batches under way: of each evaluation the status that was expected, and its own."""
        self._stop.set()
        for thread in self._threads:
            thread.join(LIMIT_S)
            assert not thread.is_alive(), "evaluations did not end"
        assert not self.trouble, self.trouble
        return self._ended

    def _send(self, url: str) -> None:
        try:
            with Client(url, patience_s=PATIENCE_S) as client:
                while not self._stop.is_set():
                    made = [self._made() for _ in range(BATCH)]
                    found = client.evaluate_many([candidate for _, candidate in made])
                    self._keep([wanted for wanted, _ in made], found)
        except Exception as error:
            self.trouble.append(error)

    def _keep(self, wanted: list[str], found: list[Evaluated]) -> None:
        with self._lock:
            pairs = zip(wanted, found, strict=True)
            self._ended += [(status, one.status or one.state) for status, one in pairs]

    def _made(self) -> tuple[str, Candidate]:
        with self._lock:
            number = next(self._numbers)
        if number % NEW == NEW - 1:
            return "correct", Candidate(material.right(f"new_{number}"), "relu")
        wanted, source = list(KNOWN.items())[number % len(KNOWN)]
        return wanted, Candidate(source, "relu")


def wait(until: Callable[[], bool], trouble: str) -> None:
    """Looks again and again. Raises AssertionError after LIMIT_S."""
    last = time.monotonic() + LIMIT_S
    while not until():
        assert time.monotonic() < last, trouble
        time.sleep(0.02)
