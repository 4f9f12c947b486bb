"""Where a user's results live, and where this machine keeps what can be made again."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from urllib.parse import parse_qs, unquote

from kernelproof.errors import UsageError

WORKSPACE_VARIABLE = "KERNELPROOF_WORKSPACE"
DATABASE_VARIABLE = "KERNELPROOF_DB"
CACHE_VARIABLE = "KERNELPROOF_CACHE"
CACHE_BYTES_VARIABLE = "KERNELPROOF_CACHE_BYTES"
DATABASE = Path("db") / "attempts.sqlite"
"""Where results are stored in a workspace, unless they are stored elsewhere."""
DEFAULT_CACHE_BYTES = 20 << 30
"""Most bytes of builds, where the variable says nothing."""

_SIZE = re.compile(r"(?P<count>\d{1,18}(?:\.\d{1,6})?) ?(?P<unit>[KMGT]iB)?", re.ASCII)
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_ADDRESS = re.compile(
    r"postgres(?:ql)?(?:\+psycopg)?://(?:(?P<user>[^:@/?#]*)(?::(?P<password>[^:@/?#]*))?@)?"
    r"(?P<host>[^@/?#]*)/(?P<name>[^@/?#]+)(?:\?(?P<query>[^#]*))?"
)


@dataclass(frozen=True)
class ServerDatabase:
    """A database on a PostgreSQL server. As text it is its address without the password."""

    url: str = field(repr=False)
    """`postgresql+psycopg://USER:PASSWORD@HOST:PORT/NAME?OPTIONS`."""

    def __str__(self) -> str:
        parts = self._parts()
        user = f"{parts['user']}@" if parts["user"] else ""
        socket = parse_qs(parts["query"] or "").get("host", [])
        query = f"?host={socket[0]}" if socket else ""
        return f"postgresql+psycopg://{user}{parts['host']}/{parts['name']}{query}"

    @property
    def name(self) -> str:
        return unquote(self._parts()["name"])

    @property
    def secrets(self) -> tuple[str, ...]:
        """The parts of the address that are never shown, as they are written and as they are meant."""
        parts = self._parts()
        found = [parts["password"] or "", *parse_qs(parts["query"] or "").get("password", [])]
        return tuple(filter(None, (*found, *map(unquote, found))))

    def _parts(self) -> dict[str, str]:
        found = _ADDRESS.fullmatch(self.url)
        if found is None:
            raise UsageError(
                "a database's address is postgresql+psycopg://USER:PASSWORD@HOST:PORT/NAME, and in a "
                "password @ : / ? # % are written %40 %3A %2F %3F %23 %25"
            )
        return found.groupdict()


DatabasePlace = Path | ServerDatabase
"""Where results are stored: a SQLite file, or a database on a server."""


@dataclass(frozen=True)
class Workspace:
    """A directory that holds `generated/` (what runs write) and, unless results are stored elsewhere,
    `db/attempts.sqlite`."""

    root: Path
    elsewhere: DatabasePlace | None = None

    @property
    def database(self) -> DatabasePlace:
        return self.elsewhere or self.root / DATABASE

    @property
    def generated(self) -> Path:
        """Sources, responses and reports that runs write, for people to read."""
        return self.root / "generated"


def user_path(text: str | Path) -> Path:
    """A path as a user writes it: `~` is home, and `~` of nobody a name like any other."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def database_place(text: str) -> DatabasePlace:
    """The database that a user means: `postgresql+psycopg://...`, or the path of a SQLite file.

    Raises UsageError for another kind of address, and for one that is malformed; neither is quoted.
    """
    if "://" not in text:
        return user_path(text).absolute()
    if not text.startswith(("postgresql", "postgres:")):
        raise UsageError("results are stored on PostgreSQL (postgresql+psycopg://...) or in a SQLite file")
    place = ServerDatabase(text)
    str(place)  # raises where it is malformed
    return place


def address(place: DatabasePlace) -> str:
    """The text by which `database_place` finds a place. A server's may hold a password."""
    return str(place) if isinstance(place, Path) else place.url


def open_workspace(
    path: Path | None = None, database: DatabasePlace | None = None, *, may_be_missing: bool = False
) -> Workspace:
    """The workspace at `path`, else `$KERNELPROOF_WORKSPACE`, else the current directory. Its results are in
    `database`, else in `$KERNELPROOF_DB`, else in the workspace.

    Raises UsageError when the directory does not exist, unless it `may_be_missing`: a typo must not make an
    empty leaderboard. Raises UsageError for a file.
    """
    named = os.environ.get(DATABASE_VARIABLE)
    if database is None and named:
        database = database_place(named)
    chosen = path or Path(os.environ.get(WORKSPACE_VARIABLE) or ".")
    try:
        root = user_path(chosen).resolve()
    except FileNotFoundError:
        raise UsageError(
            "the current directory is gone; change to one that exists, or give --workspace"
        ) from None
    if root.exists() and not root.is_dir():
        raise UsageError(f"workspace {root} is not a directory; choose another with --workspace")
    if not may_be_missing and not root.exists():
        raise UsageError(
            f"workspace {root} does not exist; generate, verify, import and tune create it, or choose another"
            " with --workspace"
        )
    return Workspace(root, database)


def cache_directory() -> Path:
    """`$KERNELPROOF_CACHE`, else the user's cache directory for kernelproof (builds, toolchain facts)."""
    configured = os.environ.get(CACHE_VARIABLE)
    if configured:
        return user_path(configured).resolve()
    from platformdirs import user_cache_path

    return user_cache_path("kernelproof")


def cache_bound() -> int:
    """Most bytes that the builds in the cache may take: `$KERNELPROOF_CACHE_BYTES`, else 20 GiB.

    Raises UsageError for what is no size, and for 0: a cache that may hold nothing is a mistake.
    """
    configured = os.environ.get(CACHE_BYTES_VARIABLE)
    if not configured:
        return DEFAULT_CACHE_BYTES
    bound = parse_bytes(configured, CACHE_BYTES_VARIABLE)
    if bound == 0:
        raise UsageError(f"{CACHE_BYTES_VARIABLE} must be more than 0; leave it out for 20 GiB")
    return bound


def parse_bytes(text: str, what: str) -> int:
    """The bytes that `5368709120`, `5GiB` or `1.5 GiB` means. `what` names its place in the error.

    Raises UsageError for anything else.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or ("." in found["count"] and found["unit"] is None):
        forms = "bytes (5368709120), or a number with KiB, MiB, GiB or TiB (500MiB, 1.5GiB)"
        raise UsageError(f"{what}: {text!r} is no size; give {forms}")
    if found["unit"] is None:
        return int(found["count"])
    return int(Decimal(found["count"]) * _UNITS[found["unit"]])


def write_in_one_step(path: Path, data: bytes) -> None:
    """A reader sees the old file or the new one, and never a part. Raises OSError."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
