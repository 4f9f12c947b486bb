"""A cluster on one machine whose daemons are killed while they work.

An API, builders and judges run as processes, and small candidates are sent all the time. The kinds are killed
in turn by SIGKILL: a builder or judge only while it has an evaluation, and each kill waits until something
was built or ended since the one before. A daemon that was killed is started again.
"""

from __future__ import annotations

import random
import re
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from kernelproof.client import Candidate, Client, Evaluated
from kernelproof.errors import MachineError
from tests.cli import material
from tests.cli.program import Program, kill

DAEMONS = {"api": 1, "builder": 2, "judge": 2}
"""How many of each kind run."""
SENDERS, BATCH = 2, 6
"""Callers, each of which sends so many and waits for all of them before it sends more."""
LIMIT_S = 240.0
"""So long nothing may happen before the run is given up."""
LATEST_S = 0.6
"""A kill comes at a random moment until so long after the event that it waited for."""
_LOOK_S = 0.02
_MADE: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("wrong_output", material.wrong),
    ("no_code", lambda name: f"an answer that holds no program: {name}"),
    ("correct", material.right),
    ("build_error", material.uncompilable),
)


@dataclass(frozen=True)
class Killed:
    """The figures."""

    kills: dict[str, int]
    """By kind."""
    evaluations: int
    unexpected: list[str]
    """Evaluations that did not end as they should: what came in place of what."""
    stored: int
    """Attempts in the database."""
    distinct: int
    """Attempts that are some evaluation's result."""
    takings: int
    late_verdicts: int
    late_builds: int
    rebuilds: int
    check: str
    """The first line that `kernelproof db check` wrote; it exited with 0."""
    seconds: float

    @property
    def is_sound(self) -> bool:
        """Whether nothing was lost, and nothing is stored twice."""
        return not self.unexpected and self.evaluations == self.stored == self.distinct


def killing(
    program: Program, suite: Path, kills: int, seed: int, say: Callable[[str], object] = lambda _: None
) -> Killed:
    """Kills so many daemons of a cluster in the program's workspace, until all that was sent has ended.

    Raises AssertionError where nothing happens for LIMIT_S, or `kernelproof db check` finds something.
    """
    began, chance = time.monotonic(), random.Random(seed)
    with _cluster(program, suite) as cluster, closing(cluster.books()) as books:
        senders = Senders(cluster)
        try:
            done = Counter[str]()
            for number in range(kills):
                kind = list(DAEMONS)[number % len(DAEMONS)]
                _kill_one(cluster, books, kind, chance, senders)
                done[kind] += 1
                if (number + 1) % 10 == 0:
                    say(f"{number + 1} kills after {time.monotonic() - began:.0f} s: {_states(books)}")
        finally:
            ended = senders.ended()
        figures = _figures(books)
    check = program.run("db", "check").stdout.partition("\n")[0]
    unexpected = [f"{found} for {wanted}" for wanted, found in ended if wanted != found]
    seconds = round(time.monotonic() - began, 1)
    return Killed(dict(done), len(ended), unexpected, check=check, seconds=seconds, **figures)


class Cluster:
    """The daemons of one machine, by kind. `url` is where the API is now."""

    def __init__(self, program: Program, suite: Path) -> None:
        self._program, self._suite = program, suite
        self.url = ""
        self.running: dict[str, list[subprocess.Popen[str]]] = {kind: [] for kind in DAEMONS}
        for kind, number in DAEMONS.items():
            for _ in range(number):
                self.start(kind)

    def start(self, kind: str) -> None:
        """Starts one more of a kind; an API answers when this returns."""
        if kind != "api":
            role = "build" if kind == "builder" else kind
            self.running[kind].append(
                self._program.start("workers", "--role", role, "--artefacts", "artefacts")
            )
            return
        usual = ("--suite", self._suite, "--backend", "cpp", "--trials", 1, "--no-measure", "--port", 0)
        process = self._program.start("serve-api", "--no-worker", *usual)
        self.running[kind].append(process)
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        found = re.match(r"(http://\S+) serves", line)
        assert found is not None, line + process.stderr.read()
        self.url = found[1]

    def kill(self, kind: str, process: subprocess.Popen[str]) -> None:
        """Kills one, and starts another of its kind."""
        assert process.poll() is None, f"a daemon ended by itself ({kind}): {process.communicate()}"
        self.running[kind].remove(process)
        kill(process)
        self.start(kind)

    def end(self) -> None:
        """Kills all."""
        for process in (each for several in self.running.values() for each in several):
            kill(process)

    def books(self) -> sqlite3.Connection:
        """The database, to read."""
        place = self._program.workspace / "db" / "attempts.sqlite"
        return sqlite3.connect(f"file:{place}?mode=ro", uri=True, timeout=60)


@contextmanager
def _cluster(program: Program, suite: Path) -> Iterator[Cluster]:
    cluster = Cluster(program, suite)
    try:
        yield cluster
    finally:
        cluster.end()


class Senders:
    """Callers in threads of their own, who send until they are told to end."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._numbers = cluster, count()
        self._ended: list[tuple[str, str]] = []
        self._stop, self._lock = threading.Event(), threading.Lock()
        self.trouble: list[Exception] = []
        self._threads = [threading.Thread(target=self._send, daemon=True) for _ in range(SENDERS)]
        for thread in self._threads:
            thread.start()

    def ended(self) -> list[tuple[str, str]]:
        """Ends after the batches under way: of each evaluation the status that was expected, and its own."""
        self._stop.set()
        for thread in self._threads:
            thread.join(LIMIT_S)
            assert not thread.is_alive(), "evaluations did not end"
        assert not self.trouble, self.trouble
        return self._ended

    def _send(self) -> None:
        try:
            while not self._stop.is_set():
                made = [self._made() for _ in range(BATCH)]
                found = self._evaluated([candidate for _, candidate in made])
                with self._lock:
                    pairs = zip(made, found, strict=True)
                    self._ended += [(wanted, one.status or one.state) for (wanted, _), one in pairs]
        except Exception as error:
            self.trouble.append(error)

    def _made(self) -> tuple[str, Candidate]:
        with self._lock:
            number = next(self._numbers)
        wanted, make = _MADE[number % len(_MADE)]
        return wanted, Candidate(make(f"made_{number}"), "relu")

    def _evaluated(self, candidates: list[Candidate]) -> list[Evaluated]:
        """Their ends, whichever API answers. Raises MachineError where none does."""
        last = time.monotonic() + LIMIT_S
        while True:
            try:
                with Client(self._cluster.url, patience_s=0.5) as client:
                    return client.evaluate_many(candidates)
            except MachineError:
                if time.monotonic() > last:
                    raise


def _kill_one(
    cluster: Cluster, books: sqlite3.Connection, kind: str, chance: random.Random, senders: Senders
) -> None:
    """Waits until something was built or ended, and one of this kind has work; then kills it."""
    before, last, victims = _progress(books), time.monotonic() + LIMIT_S, list[Any]()
    while not victims:
        assert not senders.trouble, senders.trouble
        assert time.monotonic() < last, f"nothing happens any more: {_states(books)}"
        time.sleep(_LOOK_S)
        if _progress(books) == before:
            continue
        time.sleep(chance.uniform(0, LATEST_S))
        owners = _owners(books)
        victims = [each for each in cluster.running[kind] if kind == "api" or each.pid in owners]
    cluster.kill(kind, chance.choice(victims))


def _progress(books: sqlite3.Connection) -> tuple[int, int]:
    """Evaluations that were built, and those that ended."""
    found: tuple[int, int] = books.execute("SELECT count(built), count(finished) FROM evaluations").fetchone()
    return found


def _owners(books: sqlite3.Connection) -> set[int]:
    """Process ids of those that have an evaluation."""
    rows = books.execute("SELECT DISTINCT owner FROM evaluations WHERE state IN ('building', 'running')")
    return {int(owner.split(":")[1]) for (owner,) in rows}


def _states(books: sqlite3.Connection) -> dict[str, int]:
    return dict(books.execute("SELECT state, count(*) FROM evaluations GROUP BY state"))


def _figures(books: sqlite3.Connection) -> dict[str, int]:
    names = ("takings", "late_verdicts", "late_builds", "rebuilds", "distinct", "stored")
    sums = "sum(token), sum(late_verdicts), sum(late_builds), sum(rebuilds), count(DISTINCT attempt_id)"
    row = books.execute(f"SELECT {sums}, (SELECT count(*) FROM attempts) FROM evaluations").fetchone()
    return dict(zip(names, row, strict=True))
