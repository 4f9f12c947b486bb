"""A real PostgreSQL server in a temporary folder, from the system's package."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psutil

from kernelproof.db.store import open_store
from kernelproof.workspace import ServerDatabase

PASSWORD = "open sesame"
USER = "tester"
_INITIAL = ("--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8")
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "lc_messages": "C",
}


def binaries() -> Path:
    """The folder with `initdb` and `postgres`. Raises AssertionError with what to do where there is none."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    folders += [Path(each).resolve().parent for each in (shutil.which("initdb"),) if each]
    found = [folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()]
    assert found, "the tests need a PostgreSQL server; install one: scripts/system_packages.sh test"
    return found[0]


class PostgresServer:
    """A running server: on a socket in its folder without a password, on loopback with one."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._filled = False

    def address(self, name: str = "postgres", query: str = "") -> ServerDatabase:
        """Of a database, by the socket."""
        return ServerDatabase(
            f"postgresql+psycopg://{USER}@/{name}?host={self.folder}&port={self.port}{query}"
        )

    def loopback(
        self, name: str = "postgres", password: str = "open%20sesame", query: str = ""
    ) -> ServerDatabase:
        """Of a database, by loopback and password."""
        return ServerDatabase(f"postgresql+psycopg://{USER}:{password}@127.0.0.1:{self.port}/{name}{query}")

    def sql(self, statement: str, name: str = "postgres") -> None:
        """Runs a statement outside a transaction."""
        import psycopg

        with psycopg.connect(
            host=str(self.folder), port=self.port, user=USER, dbname=name, autocommit=True
        ) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    def empty(self, options: str = "TEMPLATE template0 ENCODING 'UTF8'") -> str:
        """The name of a new database without tables."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name} {options}")
        return name

    def made(self) -> str:
        """The name of a new database in the newest schema, without rows. Migrations run once."""
        if not self._filled:
            self.sql("CREATE DATABASE filled TEMPLATE template0 ENCODING 'UTF8'")
            open_store(self.address("filled")).close()
            self._filled = True
        return self.empty("TEMPLATE filled STRATEGY FILE_COPY")

    def start(self) -> None:
        """Starts it and waits until it answers."""
        command = [
            binaries() / "postgres",
            "-D",
            self.folder / "data",
            "-k",
            self.folder,
            "-p",
            str(self.port),
        ]
        settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "-c", "listen_addresses=127.0.0.1", *settings],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **_account(),
            )
        ready = [binaries() / "pg_isready", "-q", "-h", self.folder, "-p", str(self.port)]
        for _ in range(600):
            if subprocess.run(ready, check=False).returncode == 0:
                return
            assert self._process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)
        raise AssertionError("PostgreSQL did not start in 30 s")

    def stop(self) -> None:
        """Ends it and its connections at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(60)
            self._process = None

    def kill(self) -> None:
        """Kills it and its connections, as a crash does."""
        if self._process is not None:
            process = psutil.Process(self._process.pid)
            children = process.children()
            for each in (process, *children):
                each.kill()
            psutil.wait_procs(children, 60)  # until then their shared memory is in the way of a start
            self._process.wait(60)
            self._process = None


def _account() -> dict[str, object]:
    """The account that runs the server, which does not start as root."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


@contextmanager
def server() -> Iterator[PostgresServer]:
    """A server, until the block ends."""
    initdb = binaries() / "initdb"
    folder = Path(tempfile.mkdtemp(prefix="kp-pg-", dir="/tmp"))  # a socket's path must be short
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        done = subprocess.run(
            [initdb, "-D", folder / "data", "-U", USER, "--no-sync", "--pwfile", secret, *_INITIAL],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            **_account(),  # type: ignore[call-overload]
        )
        assert done.returncode == 0, done.stderr
        running = PostgresServer(folder, _free_port())
        running.start()
        try:
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
