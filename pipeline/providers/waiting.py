"""How long to wait before a question is sent again."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_S = 120.0
"""The longest wait that a server may ask for; a server whose clock is wrong asks for hours."""
FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.5, 60.0


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, between 0 and `MAX_RETRY_AFTER_S`; None where it says nothing.

    A date is held against the response's own Date header (RFC 9110, 10.2.3), because clocks differ.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if seconds == seconds:
            return min(max(seconds, 0.0), MAX_RETRY_AFTER_S)
    until = _date(headers.get("retry-after", ""))
    if until is None:
        return None
    now = _date(headers.get("date", "")) or datetime.now(UTC)
    return min(max((until - now).total_seconds(), 0.0), MAX_RETRY_AFTER_S)


def at(time_s: float) -> str:
    """A time, in seconds since 1970, by the clock of UTC: `14:02:11`; with its date if that is not today."""
    told = datetime.fromtimestamp(time_s, UTC)
    today = told.date() == datetime.now(UTC).date()
    return f"{told:%H:%M:%S}" if today else f"{told:%Y-%m-%d %H:%M:%S}"


def backoff(tries: int) -> float:
    """Seconds before the next try: doubled after each one, with jitter so that not all come at once."""
    full = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(tries, 20))
    return full * random.uniform(0.5, 1.0)


def _date(text: str) -> datetime | None:
    """A date of HTTP; one without a zone is in GMT."""
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
