"""Workers in a real Ray cluster of three nodes, of which one dies in the middle."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import psycopg
import pytest

from kernelproof.client import Candidate, Client
from tests.cli import material
from tests.cli.program import Program
from tests.postgres import PASSWORD, PostgresServer
from tests.service.conftest import NO_PROGRAM, serving
from tests.service.test_launchers import process_of, standing, until

# Not imported here: Ray puts a folder of its own before all others on this process's path.
pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="make test installs Ray")


@contextmanager
def cluster(program: Program) -> Iterator[subprocess.Popen[str]]:
    """A cluster whose address is the first line of its output. All of its processes end with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.service.ray_cluster"],
        env=program.environment,
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=60)
        for number in program.left_after(1):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        process.wait(60)


@pytest.fixture
def shared(program: Program, postgres: PostgresServer) -> Iterator[Program]:
    """The program with a database that other machines reach, and with a place of its own for Ray's files."""
    folder = tempfile.mkdtemp(prefix="kp-ray-", dir="/tmp")  # paths of sockets must be short
    extra = {
        "KERNELPROOF_DB": postgres.loopback(postgres.made()).url,
        "RAY_TMPDIR": folder,
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    yield replace(program, extra=extra)
    shutil.rmtree(folder, ignore_errors=True)


def attempts(program: Program) -> list[int]:
    """The numbers of all stored attempts."""
    url = program.extra["KERNELPROOF_DB"].replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM attempts ORDER BY id")]


@pytest.mark.timeout(900)  # it takes a minute, and much longer on a machine that is busy
@pytest.mark.parametrize(
    ("builders", "count", "right"),
    [pytest.param(0, 24, 4, marks=pytest.mark.ci), pytest.param(3, 8, 2, marks=pytest.mark.slow)],
)
def test_a_node_that_dies_loses_no_work(
    shared: Program, suite: Path, builders: int, count: int, right: int
) -> None:
    """Each node has two places: after one of them died, there are a builder and a judge at least."""
    sources = [f"{NO_PROGRAM} {n}" if n % right else material.wrong(f"wrong_{n}") for n in range(count)]
    names = [f"builder-{n}" for n in range(builders)] + [f"judge-{n}" for n in range(3)]
    with cluster(shared) as ray, serving(shared, suite, "--no-worker") as service:
        assert ray.stdout is not None and ray.stdin is not None
        words = ("--ray", ray.stdout.readline().strip())
        numbers: tuple[object, ...] = ("--judges", 3, "--builders", builders, "--places", 2)
        if builders:
            numbers += ("--artefacts", "artefacts")  # in the workspace, not in Ray's
        started = shared.run("service", "workers", *words, *numbers).stdout
        assert sorted(line.split()[0] for line in started.splitlines()) == names
        until(lambda: all(map(process_of, standing(shared, *words).values())), "not all workers run")
        assert sorted(standing(shared, *words)) == names and secrets_shown(shared) == {}
        with Client(service.url) as client:
            sent = client.submit([Candidate(source, "relu") for source in sources])
            until(lambda: sum(client.get(each.id).ended for each in sent) >= count // 6, "nothing is judged")
            ray.stdin.write("kill\n")
            ray.stdin.flush()
            assert ray.stdout.readline() == "killed\n"
            found = [client.wait(each.id) for each in sent]
        wanted = ["no_code" if n % right else "wrong_output" for n in range(count)]
        assert [each.status for each in found] == wanted
        stored = [each.raw["result"]["attempt"] for each in found]
        assert sorted(stored) == attempts(shared), "judged twice in the books"
        assert bool(builders) == bool(list((shared.workspace / "artefacts").glob("??/*")))
        if not builders:  # all of them have a place on the other nodes
            again = shared.run("service", "workers", *words, *numbers).stdout
            said = [line.split()[0] for line in again.splitlines() if line.startswith("judge-")]
            assert sorted(said) == names  # Ray has words of its own about the node
            until(lambda: all(map(process_of, standing(shared, *words).values())), "not started elsewhere")
        ended = shared.run("service", "workers", *words, "--stop").stdout
        assert f"ended {len(names)} workers" in ended and standing(shared, *words) == {}
    assert shared.left_after(60) == {}


def secrets_shown(program: Program) -> dict[int, str]:
    """Processes on whose command line the database's password stands."""
    shown = {}
    for number in program.processes():
        with suppress(OSError):
            command = Path(f"/proc/{number}/cmdline").read_text(errors="replace")
            if PASSWORD in unquote(command):
                shown[number] = command
    return shown


def test_a_cluster_that_is_not_there(shared: Program) -> None:
    said = shared.run("service", "workers", "--ray", "127.0.0.1:9", "--status", code=3).stderr
    assert "no Ray cluster answers at 127.0.0.1:9" in said and said.count("\n") == 1
