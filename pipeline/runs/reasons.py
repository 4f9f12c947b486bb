"""What is said most often, of reasons that anybody may have written."""

from __future__ import annotations

import re

from kernelproof.report.plain import clean

LONGEST = 300
"""Characters of a reason that are kept."""
MOST = 64
"""Different reasons that are remembered."""


class Reasons:
    """What is said most often, of many texts, in bounded memory. Texts alike but for numbers are one.

    Counts by the algorithm of Misra and Gries: what makes up more than one part in `most` is never lost.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._seen: dict[str, tuple[int, str, int | None]] = {}

    def add(self, text: str, attempt_id: int | None) -> None:
        """One more."""
        alike = re.sub(r"0x[0-9a-fA-F]+|[0-9a-f]{8,}|\d+", "#", text)
        count = self._seen.get(alike, (0,))[0]
        if not count and len(self._seen) >= self._most:
            self._seen = {
                key: (number - 1, said, newest)
                for key, (number, said, newest) in self._seen.items()
                if number > 1
            }
            return
        self._seen[alike] = (count + 1, text, attempt_id)

    @property
    def most_frequent(self) -> tuple[str, int | None]:
        """Its newest wording and attempt; nothing where none is known."""
        _, text, attempt_id = max(self._seen.values(), key=lambda one: one[0], default=(0, "", None))
        return text, attempt_id


def one_line(text: str) -> str:
    """One line of bounded length that no terminal obeys."""
    return clean(" ".join(text[: 4 * LONGEST].split()))[:LONGEST]
