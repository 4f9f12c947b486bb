"""`kernelproof db check` of a database that must have nothing wrong."""

from __future__ import annotations

from kernelproof.db.maintenance import Trouble, check
from kernelproof.workspace import DatabasePlace


def sound(place: DatabasePlace) -> None:
    """Raises AssertionError with the troubles where there are any."""
    troubles: list[Trouble] = []
    assert check(place, troubles.append) == len(troubles)
    assert troubles == [], troubles
