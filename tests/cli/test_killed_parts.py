"""Parts of running batches are killed from outside: no candidate ends otherwise than without that.

A batch of recorded answers stores into a PostgreSQL server, and a service judges candidates over HTTP.
Compilers, processes with a candidate or a reference, referees, the service and the PostgreSQL server are
killed in turn, at moments of a fixed seed.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kernelproof.client import Candidate, Client
from kernelproof.db.store import open_store
from kernelproof.errors import UsageError
from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import QUICK, answer, fenced
from tests.cli.program import PROGRAM, Program, kill
from tests.postgres import PostgresServer, server

KINDS = ("compiler", "contestant", "referee", "service", "database")
PATIENCE_S = 300.0
LATEST_S = 0.3
"""A kill comes at a random moment until so long after its victim was seen."""
LONGEST = 20
"""Most runs of a command until nothing is left to do."""
AT_ONCE = 12
"""Samples of a batch, and candidates that the service has at a time."""
WAYS = (
    (material.right, Status.CORRECT),
    (material.wrong, Status.WRONG_OUTPUT),
    (material.uncompilable, Status.BUILD_ERROR),
)


@dataclass
class Killing:
    """What is killed, and what came of the candidates."""

    program: Program
    suite: Path
    database: PostgresServer
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    judged: Counter[str] = field(default_factory=Counter)
    again: int = 0
    over: bool = False

    def __post_init__(self) -> None:
        self.random, self.began = random.Random(self.seed), time.monotonic()
        self.reading = threading.Lock()
        self.batches, self.service = self.database.empty(), self.database.empty()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def run(self, kills: int) -> None:
        """Kills so many parts while batches and evaluations go on, and waits for these."""
        self._serve()
        try:
            with ThreadPoolExecutor(2) as pool:
                works = [pool.submit(self._generate), pool.submit(self._evaluate)]
                try:
                    for number in range(kills):
                        self._kill(KINDS[number % len(KINDS)], works)
                finally:
                    self.over = True
                for work in works:
                    work.result()
        finally:
            kill(self.running)

    def _kill(self, kind: str, works: list[Future[None]]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := self._victims(kind)):
            for work in works:
                if work.done():
                    work.result()
            assert time.monotonic() < deadline, f"no {kind} comes"
            time.sleep(0.02)
        time.sleep(self.random.uniform(0, LATEST_S))
        if kind == "database":
            with self.reading:
                self.database.kill()
                self.database.start()
        elif kind == "service":
            kill(self.running)
            self._serve()
        else:
            try:
                os.kill(self.random.choice(self._victims(kind) or found), signal.SIGKILL)
            except ProcessLookupError:  # it has just ended
                return self._kill(kind, works)
        self.kills[kind] += 1
        if self.kills.total() % 5 == 0:
            passed = f"{time.monotonic() - self.began:.0f} s, load {os.getloadavg()[0]:.1f}"
            print(
                f"{self.kills.total()} kills after {passed}: {dict(self.judged)} judged, {self.wrong} wrong",
                flush=True,
            )

    def _victims(self, kind: str) -> list[int]:
        """Processes of this kind, oldest first."""
        if kind in ("service", "database"):
            return [0]
        marks = {
            "compiler": (b"cc1plus", b"c++", b"as\0"),
            "contestant": (b"-I\0-B\0-c",),
            "referee": (b"kernelproof.verifier.referee",),
        }
        found = []
        for pid in self.program.processes():
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes()
                program = words.split(b"\0")[0].rsplit(b"/")[-1] + b"\0"
                seen = program if kind == "compiler" else words if b"python" in program else b""
                found += [pid] if any(mark in seen for mark in marks[kind]) else []
        return sorted(found)

    def _serve(self) -> None:
        usual = ("--suite", self.suite, "--backend", "cpp", "--trials", 1, "--no-measure", "--no-live")
        more = ("--max-losses", 1_000_000, "--port", self.port, "--db", self._address(self.service))
        with (self.program.workspace.parent / "service.log").open("a") as log:
            self.running = subprocess.Popen(
                [*PROGRAM, "service", "api", *map(str, (*usual, *more))],
                env=self.program.environment,
                cwd=self.program.workspace,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def _address(self, name: str) -> str:
        return self.database.loopback(name).url

    def _generate(self) -> None:
        """Batches of new candidates, each run again until nothing is left to do."""
        number = 0
        while number == 0 or not self.over:
            expected: dict[int, Status] = {}
            answers: material.Answers = {}
            for sample in range(AT_ONCE):
                make, expected[sample] = WAYS[sample % len(WAYS)]
                answers["level1/1", sample, 1] = answer(fenced(make(f"batch_{number}_{sample}")))
            file = material.recording(self.program.workspace.parent / f"{number}.jsonl", answers)
            command = ("generate", "level1/1", "--suite", self.suite, "--model", f"replay:{file}", *QUICK)
            command += ("--samples", AT_ONCE, "--db", self._address(self.batches))
            for _ in range(LONGEST):
                done = self.program.run(*command, code=None, seconds=3 * PATIENCE_S)
                assert done.returncode in (0, 1, 3), done.stderr
                found = self._statuses(f"replay:{file}")
                if found.keys() == expected.keys() and Status.INFRASTRUCTURE_ERROR not in found.values():
                    break
                self.again += 1
            self._compare({f"batch {number}, {each}": (expected[each], found.get(each)) for each in expected})
            number += 1

    def _statuses(self, model: str) -> dict[int, Status]:
        with self.reading, open_store(self.database.address(self.batches)) as store:
            attempts = []
            for number in range(1, (store.latest_attempt_id() or 0) + 1):
                with suppress(UsageError):  # a server that was killed leaves numbers out
                    attempts.append(store.load_attempt(number))
            ended = [each for each in attempts if model in str(each.run) and each.status is not None]
            return {each.key.sample: each.status for each in ended if each.status is not None}

    def _evaluate(self) -> None:
        number = 0
        with Client(f"http://127.0.0.1:{self.port}", patience_s=7200.0) as client:
            while number == 0 or not self.over:
                ways = [WAYS[each % len(WAYS)] for each in range(AT_ONCE)]
                sources = [make(f"sent_{number}_{each}") for each, (make, _) in enumerate(ways)]
                found = client.evaluate_many([Candidate(source, "relu") for source in sources])
                pairs = zip(ways, found, strict=True)
                said = {f"sent {number}, {n}": (way[1], one.status) for n, (way, one) in enumerate(pairs)}
                self._compare(said)
                number += 1

    def _compare(self, found: dict[str, tuple[Status, str | None]]) -> None:
        for name, (wanted, status) in found.items():
            self.judged[wanted] += 1
            if wanted != status:
                self.wrong.append(f"{name}: {status} instead of {wanted}")


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """A server of this module's own, to be killed."""
    with server() as running:
        yield running


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(10, marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
        pytest.param(100, marks=[pytest.mark.thorough, pytest.mark.timeout(7200)]),
    ],
)
def test_no_candidate_ends_otherwise(
    program: Program, suite: Path, database: PostgresServer, tmp_path: Path, kills: int
) -> None:
    program.cache = tmp_path / "cache"
    killing, began = Killing(program, suite, database, seed=1), time.monotonic()
    killing.run(kills)
    took = f"{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}"
    counts = f"{dict(killing.kills)} kills, {dict(killing.judged)} candidates"
    print(f"{counts}, {killing.again} commands run again, {took}")
    assert killing.wrong == []
    assert killing.kills == dict.fromkeys(KINDS, kills // len(KINDS))
