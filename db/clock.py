"""The database's clock: machines whose clocks differ agree on it."""

from __future__ import annotations

import time

from sqlalchemy import text
from sqlalchemy.orm import Session


def clock(session: Session) -> float:
    """Unix time by the database's clock: SQLite's is this machine's."""
    if session.get_bind().dialect.name == "postgresql":
        return float(session.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    return time.time()
