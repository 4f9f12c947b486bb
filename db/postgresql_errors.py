"""Errors of a PostgreSQL server as messages that say what to do, never with a password."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from kernelproof.db.backend import BUSY
from kernelproof.db.sqlite import LOCKED, original
from kernelproof.errors import StoreError
from kernelproof.workspace import ServerDatabase

_LOCKED_STATES = {"55P03", "40P01", "40001"}
"""Locked, deadlock, conflict."""
_FULL_STATES = {"53300", "57P03"}
"""Too many connections, starting up."""
_FULL = re.compile(r"too many clients|too many connections|connection slots are reserved|is starting up")
_LOST_STATES = ("08", "57P01", "57P02", "57P03", "57P05", "25P03")
"""The server ended the connection: it stops, it crashed, or one of its limits for idle sessions was over."""
AWAY = "cannot be reached"
UNDONE = "kernelproof_undone"
"""The attribute of an error after which nothing was stored for sure: `unconnected` or `lost`."""
_REFUSED = "refuses the user or the password; give the right ones in the address, PGPASSWORD or ~/.pgpass"
_MISSING = "is not there; make it: createdb --encoding UTF8 {name}"
_LOST = "lost its server in the middle; run the same command again, finished attempts are kept"
_DENIED = (
    # The message of a connection that fails has no error code: the text says what it is.
    (
        r"pg_hba\.conf",
        "does not let this user in from here with these SSL settings; ask for a line in pg_hba.conf",
    ),
    (
        r"password authentication failed|no password supplied|fe_sendauth",
        _REFUSED,
    ),
    (r'role ".*" does not exist', "knows no such user; createuser makes one"),
    (r'database ".*" does not exist', _MISSING),
)
"""Answers of a server that is there: it will not answer otherwise soon."""
_ADVICE = (
    *_DENIED,
    (
        r"\bSSL\b|certificate|sslmode",
        "cannot be reached with these SSL settings; sslmode sets them, as in ...?sslmode=require",
    ),
    (r"translate host name|[Nn]ame or service", "is on a server whose name is not known; check the address"),
    (
        r"refused|No such file|is shutting down|timeout expired|unreachable|No route|closed the connection",
        "cannot be reached; start its server, or check host and port in the address",
    ),
)
_BY_STATE = {
    "28": _REFUSED,
    "3D": _MISSING,
    "42501": "does not let this user do that; its owner can GRANT it",
    "25006": "can only be read: it is a standby or set so; name the primary server",
    "53100": "could not grow: the server's disk is full; free space and run the same command again, finished "
    "attempts are kept",
    "53300": "has no connection free; end other programs, or raise max_connections, then run the same "
    "command again",
    "53": "lacks memory or another resource of its server; run the same command again",
    "55P03": LOCKED,
    "40": LOCKED,
    "2BP01": "has objects of somebody else's that need our views; drop them, and make them again afterwards",
    "25P03": _LOST,
    "57": _LOST,
    "08": _LOST,
}
"""By SQLSTATE, or its beginning."""


def obstacle(error: BaseException, *, reached: bool) -> str | None:
    """What is in the way, where trying again may help and does no harm.

    `reached`: the server was there before, so that it may come back.
    """
    if _state(error) in _LOCKED_STATES:
        return BUSY
    if is_full(error):
        return "takes no connections now"
    denied = any(re.search(pattern, _message(error)) for pattern, _ in _DENIED)
    return AWAY if reached and _undone(error) and not denied else None


def is_full(error: BaseException) -> bool:
    """Whether the server has no connection free, or starts."""
    return _state(error) in _FULL_STATES or bool(_FULL.search(_message(error)))


def is_lost(error: BaseException) -> bool:
    """Whether the server says that it ended the connection."""
    return _state(error).startswith(_LOST_STATES)


@contextmanager
def explained(place: ServerDatabase) -> Iterator[None]:
    """Turns errors of the server and of the way to it into StoreError; lets our own mistakes pass."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreError(f"database {place} {_BY_STATE['53300']}") from error
    except DBAPIError as error:
        advice = _advice(error)
        if advice is None:
            raise
        said = _message(error).partition("\n")[0].strip()
        for secret in place.secrets:
            said = said.replace(secret, "***")
        text = advice.replace("{name}", place.name)
        raise StoreError(f"database {place} {text} ({said})") from None


def _advice(error: DBAPIError) -> str | None:
    state, message = _state(error), _message(error)
    if state:
        return next((_BY_STATE[state[:n]] for n in (5, 2) if state[:n] in _BY_STATE), None)
    if _undone(error) == "unconnected":
        fit = (text for pattern, text in _ADVICE if re.search(pattern, message))
        return next(fit, "cannot be opened; check the address")
    # The driver's own errors, as of a connection that broke, have no code.
    return _LOST if isinstance(error, OperationalError | InterfaceError) else None


def _undone(error: BaseException) -> str | None:
    """`unconnected` or `lost` where nothing was stored for sure; see `postgresql_connection.watch`."""
    found: str | None = getattr(original(error), UNDONE, None)
    return found


def _state(error: BaseException) -> str:
    """The error's SQLSTATE; empty where it has none."""
    return getattr(original(error), "sqlstate", None) or ""


def _message(error: BaseException) -> str:
    return str(original(error) or "")
