"""`kernelproof db check` of a database that must have nothing wrong."""

from __future__ import annotations

from kernelproof.db.upkeep.checking import Checked, Trouble, check
from kernelproof.workspace import DatabasePlace


def sound(place: DatabasePlace) -> Checked:
    """The answer of the check. Raises AssertionError with the troubles where there are any."""
    troubles: list[Trouble] = []
    done = check(place, troubles.append)
    assert troubles == [], troubles
    return done
