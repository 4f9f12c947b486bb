"""The answers of a batch: lines of JSON that may be larger than memory, found by their custom id."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from typing import IO, Any

from kernelproof.providers.reply_bodies import MAX_BODY_BYTES


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
