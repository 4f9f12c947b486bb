"""A cluster on one machine whose daemons are killed while they work.

APIs, builders and judges run as processes, several of each kind, and candidates are sent all the time. The
kinds are killed in turn by SIGKILL: a builder or judge only while it has an evaluation, at a random moment
after that was seen. One that was killed is started again at once. Some are stopped instead (SIGSTOP) until
their leases have passed to others, and go on then: what they bring has to be refused.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path

from kernelproof.client import Candidate, Client, Evaluated
from kernelproof.problems import open_suite
from kernelproof.types import VerifySettings
from tests.cli import material
from tests.cli.program import Program
from tests.service import mortal

KINDS = ("api", "builder", "judge")
REAL = {"api": 3, "builder": 1, "judge": 1}
"""How many of each kind run as users have them."""
STAND_INS = {"api": 0, "builder": 2, "judge": 3}
LATEST_S = 0.3
"""A kill comes at a random moment until so long after its daemon was seen to have work."""
STOPS = 20
"""After so many kills a daemon is stopped."""


@dataclass(frozen=True)
class Killed:
    """The figures."""

    kills: dict[str, int]
    """By kind."""
    real: int
    """Kills of daemons without a stand-in."""
    evaluations: int
    changes: dict[str, int]
    """Changes of states in the queue, as the database noted them."""
    wrong: list[str]
    """The errors that were found, for people."""
    stopped: int
    """Daemons that were stopped until their leases had passed to others."""
    brought_late: int
    """How many of these brought something afterwards, which was refused."""
    late_verdicts: int
    late_builds: int
    stored: int
    """Attempts in the database."""
    check: str
    """The first line that `kernelproof db check` wrote; it exited with 0."""
    seconds: float

    @property
    def is_sound(self) -> bool:
        """Whether nothing was lost, and nothing is stored twice."""
        return not self.wrong and self.evaluations == self.stored


def killing(
    program: Program, suite: Path, kills: int, seed: int, say: Callable[[str], object] = lambda _: None
) -> Killed:
    """Kills so many daemons of a cluster in the program's workspace, until all that was sent has ended.

    Ctrl-C ends the killing, and what was sent still ends. Raises AssertionError where nothing happens for
    LIMIT_S, or `kernelproof db check` finds something.
    """
    began, chance, done = time.monotonic(), random.Random(seed), Counter[str]()
    cluster = Cluster(program, suite)
    try:
        cluster.begin()
        history = History(cluster.database)
        history.begin()
        with closing(cluster.books()) as books:
            senders = Senders(cluster.urls)
            stops = Stops(cluster, books)
            try:
                for number in range(kills):
                    kind = KINDS[number % len(KINDS)]
                    daemon = _kill_one(cluster, books, kind, chance, senders)
                    done[kind] += 1
                    done["real"] += daemon.is_real
                    stops.look()
                    if number % STOPS == STOPS // 2:
                        stops.stop_one(chance)
                    if (number + 1) % 25 == 0:
                        load = f"load {os.getloadavg()[0]:.1f}"
                        passed = f"{time.monotonic() - began:.0f} s"
                        say(f"{number + 1} kills after {passed}, {load}: {_states(books)}")
            except KeyboardInterrupt:
                say("interrupted; what was sent still ends")
            stops.finish()
            ended = senders.ended()
            late = books.execute("SELECT sum(late_verdicts), sum(late_builds) FROM evaluations").fetchone()
            stored = books.execute("SELECT count(*) FROM attempts").fetchone()[0]
    finally:
        cluster.end()
    changes, wrong = history.end()
    wrong += [f"{found} for {wanted}" for wanted, found in ended if wanted != found]
    return Killed(
        kills={kind: done[kind] for kind in KINDS},
        real=done["real"],
        evaluations=len(ended),
        changes=dict(changes),
        wrong=wrong,
        stopped=stops.stopped,
        brought_late=stops.brought_late,
        late_verdicts=late[0],
        late_builds=late[1],
        stored=stored,
        check=program.run("db", "check").stdout.partition("\n")[0],
        seconds=round(time.monotonic() - began, 1),
    )


@dataclass
class Daemon:
    """One process of the cluster."""

    kind: str
    process: BaseProcess
    is_real: bool
    port: int = 0
    """Of an API."""

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.process.pid is not None
        return self.process.pid

    @property
    def answers(self) -> bool:
        """Whether something listens at its port."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


class Cluster:
    """The daemons of one machine."""

    def __init__(self, program: Program, suite: Path) -> None:
        self._program, self._suite = program, suite
        self._forks = mortal.context()
        self._verdicts = program.workspace / "verdicts.json"
        self.database = program.workspace / "db" / "attempts.sqlite"
        self.running: list[Daemon] = []
        self.urls: list[str] = []

    def begin(self) -> None:
        """Starts all; every API answers when this returns."""
        problem = open_suite(self._suite).find("relu")
        settings = VerifySettings(backend="cpp", trials=1, measure=False)
        sources = [source for status, source in KNOWN.items() if status != "no_code"]
        mortal.record(sources, problem, settings, self._program.cache, self._verdicts)
        for kind in KINDS:
            for number in range(REAL[kind] + STAND_INS[kind]):
                self.start(kind, real=number < REAL[kind], port=_free_port() if kind == "api" else 0)
            if kind == "api":
                wait(lambda: all(each.answers for each in self.running), "no API answers")
        self.urls = [f"http://127.0.0.1:{each.port}" for each in self.running if each.kind == "api"]

    def start(self, kind: str, *, real: bool, port: int = 0) -> None:
        """Starts one more of a kind."""
        if kind == "api":
            usual = ("--suite", self._suite, "--backend", "cpp", "--trials", 1, "--no-measure", "--no-live")
            words: tuple[object, ...] = ("service", "api", "--no-worker", *usual, "--port", port)
            words += ("--max-losses", 1_000_000)  # any of them may be lost so often by chance
        else:
            words = (
                "service",
                "workers",
                "--role",
                "build" if kind == "builder" else kind,
                "--artefacts",
                "artefacts",
            )
            words += ("--places", 3)
        place = self._program.workspace
        verdicts = None if real else self._verdicts
        process = mortal.start(self._forks, words, self._program.environment, place, verdicts)
        self.running.append(Daemon(kind, process, real, port))

    def kill(self, daemon: Daemon) -> None:
        """Kills one, and starts another like it."""
        self.remove(daemon)
        self.start(daemon.kind, real=daemon.is_real, port=daemon.port)

    def remove(self, daemon: Daemon) -> None:
        """Kills one."""
        if daemon in self.running:
            self.running.remove(daemon)
        daemon.process.kill()
        daemon.process.join(60)

    def end(self) -> None:
        """Kills all."""
        for daemon in list(self.running):
            self.remove(daemon)

    def log(self) -> str:
        """The end of what daemons wrote."""
        return (self._program.workspace / "daemons.log").read_text()[-2000:]

    @property
    def is_writable(self) -> bool:
        """Whether somebody can write into the database now."""
        with closing(sqlite3.connect(self.database, timeout=1, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")
            except sqlite3.OperationalError:
                return False
        return True

    def books(self) -> sqlite3.Connection:
        """The database, to read."""
        return sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=60)


@dataclass
class Stops:
    """Daemons that are stopped until what they had is another's, and then go on."""

    cluster: Cluster
    books: sqlite3.Connection
    stopped: int = 0
    brought_late: int = 0
    _waiting: list[tuple[Daemon, dict[str, int]]] = field(default_factory=list)
    """With the tokens of what it had."""
    _back: list[tuple[Daemon, list[str], int, float]] = field(default_factory=list)
    """Its evaluations, the late ones among them when it went on, and the moment."""

    def stop_one(self, chance: random.Random) -> None:
        """Stops a stand-in that has work, and starts another in its place."""
        wait(lambda: self._stop_one(chance), "no stand-in has work")

    def _stop_one(self, chance: random.Random) -> bool:
        """Whether there was one, which had work when it was stopped."""
        owned = _owned(self.books)
        found = [each for each in self.cluster.running if each.pid in owned and not each.is_real]
        if not found:
            return False
        daemon = chance.choice(found)
        os.kill(daemon.pid, signal.SIGSTOP)
        had = _owned(self.books).get(daemon.pid)
        if had is None or not self.cluster.is_writable:  # it has the file's lock: nobody could go on
            os.kill(daemon.pid, signal.SIGCONT)
            return False
        self.cluster.running.remove(daemon)
        self.cluster.start(daemon.kind, real=False)
        self._waiting.append((daemon, had))
        return True

    def look(self) -> None:
        """Has those go on whose leases have passed, and ends those that brought something."""
        for daemon, had in list(self._waiting):
            if not self._held(daemon, had):
                self._waiting.remove((daemon, had))
                self._back.append((daemon, list(had), self._late(had), time.monotonic()))
                os.kill(daemon.pid, signal.SIGCONT)
                self.stopped += 1
        for each in list(self._back):
            daemon, numbers, before, since = each
            late = self._late(numbers) > before
            if late or time.monotonic() > since + mortal.LEASE_S:
                self._back.remove(each)
                self.brought_late += late
                self.cluster.remove(daemon)

    def finish(self) -> None:
        """Until all went on and were ended."""

        def over() -> bool:
            self.look()
            return not self._waiting and not self._back

        wait(over, "what a stopped daemon had is taken by no other")

    def _held(self, daemon: Daemon, had: dict[str, int]) -> bool:
        """Whether it still has one of those."""
        return any(_owned(self.books).get(daemon.pid, {}).get(each) == token for each, token in had.items())

    def _late(self, numbers: list[str] | dict[str, int]) -> int:
        marks = ",".join("?" * len(numbers))
        late = f"SELECT sum(late_verdicts + late_builds) FROM evaluations WHERE id IN ({marks})"
        return int(self.books.execute(late, list(numbers)).fetchone()[0] or 0)


def _kill_one(
    cluster: Cluster, books: sqlite3.Connection, kind: str, chance: random.Random, senders: Senders
) -> Daemon:
    """Waits until one of this kind has work, kills it, and says which one it was."""
    found = list[Daemon]()

    def seen() -> bool:
        assert not senders.trouble, senders.trouble
        ended = [each.kind for each in cluster.running if not each.process.is_alive()]
        assert not ended, f"daemons ended by themselves ({ended}): {cluster.log()}"
        owned = _owned(books)
        mine = [each for each in cluster.running if each.kind == kind]
        found[:] = [each for each in mine if (each.answers if kind == "api" else each.pid in owned)]
        return bool(found)

    wait(seen, "nothing happens any more")
    time.sleep(chance.uniform(0, LATEST_S))
    daemon = chance.choice(found)
    cluster.kill(daemon)
    return daemon


def _owned(books: sqlite3.Connection) -> dict[int, dict[str, int]]:
    """By process id: what it has, with the tokens."""
    taken = "SELECT owner, id, token FROM evaluations WHERE state IN ('building', 'running')"
    found: dict[int, dict[str, int]] = {}
    for owner, number, token in books.execute(taken):
        found.setdefault(int(owner.split(":")[1]), {})[number] = token
    return found


def _states(books: sqlite3.Connection) -> dict[str, int]:
    return dict(books.execute("SELECT state, count(*) FROM evaluations GROUP BY state"))


def _free_port() -> int:
    """A port of those that no connection gets by itself, so that it is free again after a kill."""
    for port in random.Random().sample(range(10_000, 30_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


SENDERS, BATCH = 3, 8
"""Callers, each of which sends so many and waits for all of them before it sends more."""
NEW = 48
"""Of so many candidates one is new, and has to be compiled and verified. The others were built before."""
LIMIT_S = 300.0
"""So long nothing may happen before the run is given up."""
PATIENCE_S = 7200.0
"""So long a caller asks again: the service that it asks may be killed again before each answer."""
KNOWN = {
    "correct": material.right("known"),
    "wrong_output": material.wrong("known"),
    "build_error": material.uncompilable("known"),
    "no_code": "an answer that holds no program",
}


class Senders:
    """Callers in threads of their own, who send until they are told to end."""

    def __init__(self, urls: list[str]) -> None:
        self._numbers = count()
        self._ended: list[tuple[str, str]] = []
        self._stop, self._lock = threading.Event(), threading.Lock()
        self.trouble: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._send, args=(urls[number % len(urls)],), daemon=True)
            for number in range(SENDERS)
        ]
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

    def _send(self, url: str) -> None:
        try:
            with Client(url, patience_s=PATIENCE_S) as client:
                while not self._stop.is_set():
                    made = [self._made() for _ in range(BATCH)]
                    found = client.evaluate_many([candidate for _, candidate in made])
                    self._keep([wanted for wanted, _ in made], found)
        except Exception as error:
            self.trouble.append(error)

    def _keep(self, wanted: list[str], found: list[Evaluated]) -> None:
        with self._lock:
            pairs = zip(wanted, found, strict=True)
            self._ended += [(status, one.status or one.state) for status, one in pairs]

    def _made(self) -> tuple[str, Candidate]:
        with self._lock:
            number = next(self._numbers)
        if number % NEW == NEW - 1:
            return "correct", Candidate(material.right(f"new_{number}"), "relu")
        wanted, source = list(KNOWN.items())[number % len(KNOWN)]
        return wanted, Candidate(source, "relu")


def wait(until: Callable[[], bool], trouble: str) -> None:
    """Looks again and again. Raises AssertionError after LIMIT_S."""
    last = time.monotonic() + LIMIT_S
    while not until():
        assert time.monotonic() < last, trouble
        time.sleep(0.02)


WAITING, TAKEN = ("queued", "built"), ("building", "running")
_COLUMNS = "evaluation, was, became, token, losses, before"
_TRIGGER = f"""
CREATE TABLE history ({_COLUMNS});
CREATE INDEX history_evaluation ON history (evaluation, token);
CREATE TRIGGER history_of_states AFTER UPDATE ON evaluations WHEN old.state != new.state BEGIN
    INSERT INTO history VALUES (new.id, old.state, new.state, new.token, new.losses, old.losses);
END;
"""


class History:
    """The history of a database file, from `begin` to `end`."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def begin(self) -> None:
        """Has the database note what happens from now on."""
        with closing(sqlite3.connect(self._place, timeout=60)) as connection:
            connection.executescript(_TRIGGER)

    def end(self) -> tuple[Counter[str], list[str]]:
        """How many changes there were of each kind, and what is wrong. The history is removed."""
        with closing(sqlite3.connect(self._place, timeout=60)) as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM history ORDER BY rowid").fetchall()
            books = connection.execute(
                "SELECT id, state, token, losses, attempt_id FROM evaluations"
            ).fetchall()
            connection.executescript("DROP TRIGGER history_of_states; DROP TABLE history")
        seen, wrong = Counter[str](), list[str]()
        tokens, lost, ends = Counter[str](), set[tuple[str, int]](), dict[str, int]()
        for number, was, became, token, losses, before in rows:
            kind = _kind(was, became, losses - before)
            seen[kind] += 1
            if number in ends:
                wrong.append(f"{number} changed after its end: {was} to {became}")
            if kind == "takings":
                tokens[number] += 1
            elif losses > before:
                lost.add((number, token))
            if token != tokens[number]:
                wrong.append(f"{number} has token {token} after {tokens[number]} takings")
            if kind == "verdicts" and (number, token) in lost:
                wrong.append(f"{number} has a verdict with token {token}, whose lease was lost")
            if became not in (*WAITING, *TAKEN):
                ends[number] = token
        for number, state, token, losses, _ in books:
            if ends.get(number) != token:
                wrong.append(
                    f"{number} is {state} with token {token}, and its end came with {ends.get(number)}"
                )
            if losses != sum(one == number for one, _ in lost):
                wrong.append(f"{number} counts {losses} losses")
        attempts = [attempt for *_, attempt in books if attempt is not None]
        if len(set(attempts)) != len(books):
            wrong.append(f"{len(books)} evaluations have {len(set(attempts))} results")
        if seen["takings"] != sum(seen[kind] for kind in seen if kind != "takings"):
            wrong.append(f"the takings are not the sum of what became of them: {dict(seen)}")
        return seen, wrong


def _kind(was: str, became: str, losses: int) -> str:
    """The name of a change. Each taking has to be followed by one of the others."""
    if became in TAKEN and was in WAITING:
        return "takings"
    if was not in TAKEN:
        return "other"
    if losses:
        return "losses"
    if became == "done":
        return "verdicts"
    if (was, became) == ("building", "built"):
        return "builds"
    if became in WAITING:
        return "given back"
    return "other"
