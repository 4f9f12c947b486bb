"""What a batch may spend, and when it stops asking: money, tokens, time, attempts, and errors that repeat."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from kernelproof.db.views import Spent
from kernelproof.types import Response

REFRESH_S = 5.0
"""So old a sum over the store may be: another command may add to the same runs."""


@dataclass(frozen=True)
class Limits:
    """None: no limit. Money, tokens and attempts count for the runs, whichever command spent them."""

    max_cost: float | None = None
    """US dollars. Answers whose cost is unknown count nothing; the summary says how many they are."""
    max_tokens_total: int | None = None
    """Prompt and completion tokens together."""
    max_time: float | None = None
    """Seconds of this command."""
    max_device_time: float | None = None
    """Seconds in which verifications of the runs held the device."""
    max_attempts: int | None = None
    equal_errors: int | None = 10
    """The number of questions of a model that fail alike in a row and so end the asking. Errors about one
    question alone do not count."""


class Budget:
    """Says before each question whether it may be asked. Thread-safe.

    A limit ends the asking, not the work: what is being answered or judged is brought to its end. Questions
    in flight count with the mean of the answers so far, so that a run exceeds a limit by little.
    """

    def __init__(
        self, limits: Limits, spent: Callable[[], Spent], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`spent` reads from the store what the runs took so far."""
        self._limits, self._read, self._clock = limits, spent, clock
        self._began = clock()
        self._lock = threading.Lock()
        self._stored, self._at = spent(), clock()
        self._since = Spent()
        self._in_flight = 0
        self.reached: str | None = None
        """The limit that was reached, in words with its flag; None as long as none was."""

    def may_ask(self) -> bool:
        """Whether another question may be asked. If so, it is in flight until `answered` or `failed`."""
        with self._lock:
            if self.reached is None:
                self.reached = self._exceeded()
            if self.reached is not None:
                return False
            self._in_flight += 1
            return True

    def answered(self, response: Response) -> None:
        """A question was answered, and its answer is stored."""
        usage = response.usage
        with self._lock:
            self._in_flight -= 1
            s = self._since
            self._since = s.model_copy(
                update={
                    "answers": s.answers + 1,
                    "prompt_tokens": s.prompt_tokens + ((usage and usage.prompt_tokens) or 0),
                    "completion_tokens": s.completion_tokens + ((usage and usage.completion_tokens) or 0),
                    "cost_usd": s.cost_usd + (response.cost_usd or 0.0),
                }
            )

    def failed(self) -> None:
        with self._lock:
            self._in_flight -= 1

    def _exceeded(self) -> str | None:
        limits = self._limits
        if limits.max_time is not None and self._clock() - self._began >= limits.max_time:
            return f"--max-time: {limits.max_time:g} s are over"
        stored = (limits.max_cost, limits.max_tokens_total, limits.max_attempts, limits.max_device_time)
        if all(limit is None for limit in stored):
            return None
        answers, tokens, cost = self._so_far()
        held = self._stored.device_s
        if limits.max_device_time is not None and held >= limits.max_device_time:
            return f"--max-device-time: {held:.0f} of {limits.max_device_time:g} s were used"
        flying = self._in_flight / answers if answers else 0.0
        asked = f", {self._in_flight} more were asked" if self._in_flight else ""
        if limits.max_attempts is not None and answers + self._in_flight >= limits.max_attempts:
            return f"--max-attempts: {answers} of {limits.max_attempts} answers are stored{asked}"
        if limits.max_tokens_total is not None and tokens * (1 + flying) >= limits.max_tokens_total:
            return f"--max-tokens-total: {tokens} of {limits.max_tokens_total} tokens are used{asked}"
        if limits.max_cost is not None and cost * (1 + flying) >= limits.max_cost:
            return f"--max-cost: ${cost:.4g} of ${limits.max_cost:.4g} are spent{asked}"
        return None

    def _so_far(self) -> tuple[int, int, float]:
        if self._clock() - self._at >= REFRESH_S:
            # Answers since the last look are in the store by now.
            self._stored, self._since, self._at = self._read(), Spent(), self._clock()
        a, b = self._stored, self._since
        return a.answers + b.answers, a.tokens + b.tokens, a.cost_usd + b.cost_usd


class EqualErrors:
    """Counts errors of one model's server that are alike and follow each other without an answer between."""

    def __init__(self, most: int | None) -> None:
        self._most, self._last, self._count = most, "", 0

    def answered(self) -> None:
        """An answer came: whatever failed before was not for good."""
        self._last, self._count = "", 0

    def failed(self, message: str) -> str | None:
        """Why asking on is pointless; None while it is not."""
        alike = re.sub(r"[0-9a-f]{8,}|\d+", "#", message)
        self._count = self._count + 1 if alike == self._last else 1
        self._last = alike
        if self._most is None or self._count < self._most:
            return None
        many = "a question failed" if self._count == 1 else f"{self._count} questions in a row failed alike"
        return f"{many}: {message}; mend that and run the same command again, or raise --stop-after-errors"
