"""`generate`, `verify`, `runs rejudge`, `tune` and `service api` are killed at random, and started again.

Each command works in a fresh workspace until it ends by itself. Then the books have to be those of a run that
nobody disturbed: nothing is missing, nothing is there twice, nothing is left over.

The variable `TEST_KILLS` says how many kills each command gets, `TEST_KILLS_REAL` how many of them meet the
real engine (one of ten), and `TEST_KILLS_SEED` the seed. The other kills meet an engine that takes each
verdict from a run that nobody disturbed, so that most hit the books.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kernelproof.client import Candidate, Client
from kernelproof.db.views import StoredAttempt
from kernelproof.types import Status
from kernelproof.verifier.build.build_cache import BuildCache, entries
from tests.cli import material, prestarted
from tests.cli.material import QUICK, answer, fenced
from tests.cli.prestarted import Command
from tests.cli.program import Program
from tests.cli.test_tune import SHORT, kernel
from tests.loopback import Quiet, serving

KILLS = int(os.environ.get("TEST_KILLS", "20"))
REAL = int(os.environ.get("TEST_KILLS_REAL", KILLS // 10))
SEED = int(os.environ.get("TEST_KILLS_SEED", "1"))


def unparsable(name: str) -> str:
    """Refused before anything is built: it costs hardly any time, so that more kills hit the books."""
    return material.right(name).replace("def forward(self, x):", "def forward(self, x)")


WAYS = (
    (material.right, Status.CORRECT),
    (unparsable, Status.SYNTAX_ERROR),
    (material.uncompilable, Status.BUILD_ERROR),
    (unparsable, Status.SYNTAX_ERROR),
    (material.wrong, Status.WRONG_OUTPUT),
    (unparsable, Status.SYNTAX_ERROR),
)
CANDIDATES = len(WAYS)
LONGEST_S = 600.0
"""Most that a command takes when nobody kills it, on a loaded machine too."""
HOWS: tuple[tuple[str, int, Callable[[int, int], None], signal.Signals], ...] = (
    ("SIGKILL", 4, os.kill, signal.SIGKILL),
    ("SIGKILL to its group", 2, os.killpg, signal.SIGKILL),
    ("SIGTERM", 2, os.kill, signal.SIGTERM),
    ("SIGINT", 2, os.kill, signal.SIGINT),
)
"""Name, weight, and what is sent how."""
INTERRUPTED = 130
RECORDED = """
import json, os, random, time
from datetime import UTC, datetime
from kernelproof.hashing import sha256_text
from kernelproof.types import Verification
from kernelproof.verifier.engine.engine import Engine

real = Engine.verify

def verify(self, source, problem, settings, *more, **named):
    known = json.loads(open(os.environ["TEST_VERDICTS"]).read())
    text = known.get(source.partition("\\n# ")[0].strip())
    if text is None:
        return real(self, source, problem, settings, *more, **named)
    time.sleep(random.uniform(0, 0.3))
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    own = {"candidate_sha256": sha256_text(source), "settings": settings, "created": now}
    return Verification.model_validate_json(text).model_copy(update=own)

Engine.verify = verify
"""
"""What Python imports first: an engine that knows the verdicts of the undisturbed run. All else is real."""


class Killer:
    """Kills a command at random moments of its life, and counts."""

    def __init__(
        self, program: Program, kills: int = 0, longest_s: float = 0.0, extra: Mapping[str, str] = {}
    ) -> None:
        """`longest_s`: seconds of a run that nobody disturbs. `extra`: more variables of the command."""
        self._program, self._most, self._longest_s, self._extra = program, kills, longest_s, extra
        self._random = random.Random(SEED)
        self._shared = shared_memory()
        self.kills = Counter[str]()
        self.lived_s = 0.0
        """Of the newest process that ended by itself."""

    @property
    def calm(self) -> Killer:
        """One that starts the same, and kills nothing."""
        return Killer(self._program, extra=self._extra)

    @property
    def over(self) -> bool:
        """Whether all kills are done."""
        return self.kills.total() >= self._most

    def finish(self, command: tuple[object, ...], code: int) -> None:
        """Starts a command again and again, until it ends by itself with this exit code."""
        while (process := self.survivor(command, code)) is None:
            pass
        assert process.poll() == code and "Traceback" not in self.said(), f"{command}\n{self.said()}"

    def survivor(
        self, command: tuple[object, ...], code: int = 0, ended: Callable[[], bool] = lambda: False
    ) -> Command | None:
        """A process of the command that has done its work: it is over, or `ended` says so. None: killed."""
        process, began = self._start(command), time.monotonic()
        until = began + (LONGEST_S if self.over else self._random.uniform(0, self._longest_s))
        try:
            while process.poll() is None and not ended():
                if time.monotonic() > until:
                    assert not self.over, f"{command} does not end"
                    self._kill(process, code)
                    return None
                time.sleep(0.005)
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            raise
        self.lived_s = time.monotonic() - began
        return process

    def said(self) -> str:
        """What the newest process wrote."""
        return self._log.read_text(errors="replace")

    def _start(self, command: tuple[object, ...]) -> Command:
        program = self._program
        self._log = program.workspace / "log"
        with self._log.open("w") as log, Path(os.devnull).open() as nothing:
            streams = [nothing.fileno(), log.fileno(), log.fileno()]
            return prestarted.start(
                command,
                environment={**program.environment, **self._extra},
                directory=program.workspace,
                streams=streams,
            )

    def _kill(self, process: Command, code: int) -> None:
        name, _, send, number = self._random.choices(HOWS, [weight for _, weight, *_ in HOWS])[0]
        with suppress(ProcessLookupError):  # it has just ended
            send(process.pid, number)
        ended = over(process)
        self.kills[name] += 1
        assert ended in (code, INTERRUPTED, -number), f"{name}: {ended} {self.said()}"
        if ended >= 0:  # else a signal met it on its way to the program, maybe
            assert "Traceback" not in self.said(), self.said()
        left = self._program.left_after()
        assert left == {}, f"left 10 s after {name}: {left}"
        check_files(self._program, self._shared)


def check_files(program: Program, shared: set[str]) -> None:
    """No lock is held, no build is half there, and /dev/shm holds nothing but what was in it."""
    assert held_locks(program.cache) == held_locks(Path(os.environ["KERNELPROOF_LOCKS"])) == []
    builds = program.cache / "builds"
    assert [each.key for each in entries(builds) if BuildCache(builds).load(each.key) is None] == []
    until = time.monotonic() + 10
    while (now := shared_memory()) - shared and time.monotonic() < until:
        time.sleep(0.1)
    assert now <= shared


def held_locks(folder: Path) -> list[str]:
    """Files below a folder that somebody holds a lock on."""
    held = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(str(path))
    return held


def shared_memory() -> set[str]:
    """Files in /dev/shm that no process maps: those of other tests' servers and browsers are in use."""
    in_use = ""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):  # of a process that has ended, or another user's
            in_use += maps.read_text()
    return {path.name for path in Path("/dev/shm").iterdir() if str(path) not in in_use}


def over(process: Command) -> int:
    """The exit code of a process that was sent a signal. Raises AssertionError when it does not end."""
    until = time.monotonic() + 60
    while (code := process.poll()) is None:
        assert time.monotonic() < until, f"process {process.pid} does not end"
        time.sleep(0.005)
    return code


class Work(ABC):
    """What a command does in a workspace of its own."""

    def __init__(self, program: Program, suite: Path, folder: Path) -> None:
        self.program, self.suite, self.folder = program, suite, folder

    @contextmanager
    def around(self) -> Iterator[None]:
        """What is there for all workspaces."""
        yield

    def begin(self, calm: Killer) -> None:  # noqa: B027  # most commands need nothing
        """Before the command starts in a fresh workspace. `calm` kills nothing."""

    @abstractmethod
    def carry_out(self, killer: Killer) -> None:
        """The command, to its end."""

    @abstractmethod
    def result(self) -> Any:
        """What is stored, which is equal after each run. Raises AssertionError where something is twice."""

    def complete(self, workspace: Path, killer: Killer) -> Any:
        """The result of all of it in a fresh workspace, where nothing else may be left."""
        self.program.workspace = workspace
        workspace.mkdir()
        shared = shared_memory()
        self.begin(killer.calm)
        self.carry_out(killer)
        check_what_is_left(self.program, shared)
        return self.result()

    def once(self) -> dict[tuple[str, str | None], Status | None]:
        """Status by kind of run and source. Each is there once, with one verification where it can have one.

        What this machine failed at is judged again as another attempt, so it does not count.
        """
        attempts = [a for a in self.program.attempts() if a.status is not Status.INFRASTRUCTURE_ERROR]
        found = {(str(a.run.kind), a.source): a.status for a in attempts}
        assert len(found) == len(attempts), "a candidate is stored twice"
        assert all(kinds(a) == (["first"] if a.source else []) for a in attempts)
        return found


def kinds(attempt: StoredAttempt) -> list[str]:
    return [each.kind for each in attempt.verifications]


def candidates() -> list[str]:
    """Different programs, whose extensions are equal and so are built once."""
    return [f"{WAYS[n][0]('killed')}# candidate {n}\n" for n in range(CANDIDATES)]


class Generate(Work):
    """Questions to a server that answers with the ways in turn; second answers are unparsable."""

    def __init__(self, program: Program, suite: Path, folder: Path) -> None:
        super().__init__(program, suite, folder)
        self.ways: dict[str, int] = {}
        """By the question's key, which is the same in each workspace: what is answered."""
        self.newest: dict[str, str] = {}
        """By the question's key: the id of the newest answer in this workspace."""
        self.asked = self.asked_again = 0

    @contextmanager
    def around(self) -> Iterator[None]:
        work = self

        class Handler(Quiet):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["content-length"])).decode()
                time.sleep(0.1)
                data = json.dumps(work.answer(self.headers["idempotency-key"], text)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                with suppress(OSError):  # whoever asked was killed
                    self.wfile.write(data)

        with serving(Handler) as self.url:
            yield

    def answer(self, key: str, question: str) -> dict[str, Any]:
        """The answer to a question; none is like another."""
        self.asked += 1
        number = self.newest[key] = f"answer {self.asked}"
        way = self.ways.setdefault(key, len(self.ways)) % len(WAYS)
        make = unparsable if "# answer" in question else WAYS[way][0]
        return answer(fenced(f"{make('killed')}# {number}\n")) | {"id": number}

    def begin(self, calm: Killer) -> None:
        self.newest.clear()

    def carry_out(self, killer: Killer) -> None:
        command = ("generate", "level1/1", "--suite", self.suite, "--model", "openai:any", *QUICK)
        more = ("--base-url", f"{self.url}/v1", "--samples", CANDIDATES, "--turns", 2)
        before = self.asked
        killer.finish((*command, *more), 0)
        self.asked_again += self.asked - before - len(self.newest)

    def result(self) -> dict[tuple[str, int, int], Status | None]:
        attempts = self.program.attempts()
        assert all(kinds(attempt) == ["first"] for attempt in attempts)
        stored = [
            str((each.response.raw or {}).get("id"))
            for a in attempts
            for each in a.responses
            if each.response
        ]
        assert sorted(stored) == sorted(self.newest.values()), "an answered question was asked again"
        return self.program.statuses()


class Verify(Work):
    """A folder of candidates, and a text without one."""

    def __init__(self, program: Program, suite: Path, folder: Path) -> None:
        super().__init__(program, suite, folder)
        self.candidates = folder / "candidates"
        self.candidates.mkdir()
        (self.candidates / "prose.txt").write_text("Kernels are nice.\n")
        for number, source in enumerate(candidates()):
            (self.candidates / f"{number}.py").write_text(source)

    def carry_out(self, killer: Killer) -> None:
        killer.finish(("verify", self.candidates, "--problem", "relu", "--suite", self.suite, *QUICK), 1)

    def result(self) -> dict[tuple[str, str | None], Status | None]:
        found = self.once()
        assert Counter(found.values()) == Counter([Status.NO_CODE, *(WAYS[n][1] for n in range(CANDIDATES))])
        return found


class Rejudge(Work):
    """Recorded answers, judged under other settings and then once again."""

    AGAIN = ("runs", "rejudge", "night", "--trials", 2, "--again")

    def begin(self, calm: Killer) -> None:
        night, here = self.folder / "night", self.program.workspace / "db"
        if not night.exists():
            answers = {("level1/1", n, 1): answer(fenced(source)) for n, source in enumerate(candidates())}
            file = material.recording(self.folder / "answers.jsonl", answers)
            command = ("generate", "level1/1", "--suite", self.suite, "--model", f"replay:{file}", *QUICK)
            calm.finish((*command, "--run", "night", "--samples", CANDIDATES), 0)
            here.rename(night)
        shutil.copytree(night, here)

    def carry_out(self, killer: Killer) -> None:
        killer.finish(self.AGAIN[:-1], 0)
        killer.finish(self.AGAIN, 0)

    def result(self) -> dict[tuple[str, int, int], Status | None]:
        with self.program.store() as store:
            batches = store.batches.newest(most=1_000_000)
        ends = Counter(
            b.config["rejudge"]["again"] for b in batches if "rejudge" in b.config and b.ended == "done"
        )
        # One that was killed after it had said that it was done is begun anew.
        assert ends[True] >= 1 and ends[False] >= 1
        for attempt in self.program.attempts():
            assert kinds(attempt) == ["first"] + ["again"] * (1 + ends[True]), f"{kinds(attempt)}, {ends}"
            trials = [each.verification.settings.trials for each in attempt.verifications]
            assert trials == [1] + [2] * (1 + ends[True])
            assert {each.verification.status for each in attempt.verifications} == {attempt.status}
        return self.program.statuses()


class Tune(Work):
    """Two kernels of which one wastes work, and one that does not build."""

    def __init__(self, program: Program, suite: Path, folder: Path) -> None:
        super().__init__(program, suite, folder)
        before = "// tune: REPEAT = 1 | 2 | 16\nconstexpr int REPEAT = 16;\nstatic_assert(REPEAT != 2);"
        (folder / "kernel.py").write_text(kernel(before))

    def carry_out(self, killer: Killer) -> None:
        killer.finish(
            ("tune", self.folder / "kernel.py", "--problem", "sines", "--suite", self.suite, *SHORT), 0
        )

    def result(self) -> dict[tuple[str, str | None], Status | None]:
        found = self.once()
        assert Counter(kind for kind, _ in found) == {"tune": 3, "verify": 2}
        return found


class Service(Work):
    """Candidates that a client sends; it waits for a service that is away."""

    def carry_out(self, killer: Killer) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = ("service", "api", "--suite", self.suite, *QUICK, "--port", port, "--max-losses", 1_000_000)
        with (
            ThreadPoolExecutor(1) as pool,
            Client(f"http://127.0.0.1:{port}", patience_s=LONGEST_S) as client,
        ):
            sent = [Candidate(source, "relu") for source in candidates()]
            work = pool.submit(client.evaluate_many, sent)
            while (process := killer.survivor(command, ended=work.done)) is None:
                pass
            os.kill(process.pid, signal.SIGTERM)
            assert over(process) == 0 and "Traceback" not in killer.said(), killer.said()
            wanted = [status for _, status in WAYS]
            assert [each.status for each in work.result()] == wanted

    def result(self) -> dict[tuple[str, str | None], Status | None]:
        found = self.once()
        assert len(found) == CANDIDATES
        return found


WORKS: dict[str, Callable[[Program, Path, Path], Work]] = {
    "verify": Verify,
    "generate": Generate,
    "rejudge": Rejudge,
    "tune": Tune,
    "service": Service,
}


def check_what_is_left(program: Program, shared: set[str]) -> None:
    """After a command's end: no process, scratch folder, lock, lease or half build; the database is sound."""
    assert program.left_after() == {} and program.scratch() == []
    check_files(program, shared)
    with closing(sqlite3.connect(program.workspace / "db" / "attempts.sqlite")) as connection:
        assert connection.execute("SELECT key, owner FROM leases").fetchall() == []
    assert "nothing wrong" in program.run("db", "check").stdout


@dataclass
class Recorded:
    """Verdicts of the real engine, by what was built."""

    texts: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """How long the undisturbed command took."""

    def take(self, program: Program, seconds: float) -> None:
        """Takes the verdicts that are stored in the workspace."""
        self.seconds = seconds
        for attempt in program.attempts():
            if attempt.source is not None and attempt.verdict is not None:
                key = attempt.source.partition("\n# ")[0].strip()
                self.texts[key] = attempt.verdict.verification.model_dump_json()

    def variables(self, program: Program, folder: Path) -> dict[str, str]:
        """Those of a command whose engine knows these verdicts."""
        (folder / "verdicts.json").write_text(json.dumps(self.texts))
        (folder / "sitecustomize.py").write_text(RECORDED)
        path = f"{folder}:{program.environment['PYTHONPATH']}"
        return {"PYTHONPATH": path, "TEST_VERDICTS": str(folder / "verdicts.json")}


@pytest.fixture(scope="module")
def verdicts() -> Recorded:
    """All commands but `tune` have equal candidates: the first one has the real engine judge them."""
    return Recorded()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["verify", "generate"])
def test_a_command_killed_four_times_goes_on(
    program: Program, suite: Path, tmp_path: Path, name: str
) -> None:
    """With the real engine, and a cache in which nothing is built yet."""
    work, root, results = WORKS[name](program, suite, tmp_path), program.workspace, list[Any]()
    killer = Killer(program, 4, longest_s=6.0)
    with work.around():
        while not killer.over:
            program.cache = tmp_path / f"cache {len(results)}"
            results.append(work.complete(root / f"killed {len(results)}", killer))
        expected = work.complete(root / "undisturbed", killer.calm)
    assert results == [expected] * len(results)


@pytest.mark.thorough
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", WORKS)
def test_a_killed_command_goes_on(
    program: Program, suite: Path, tmp_path: Path, verdicts: Recorded, name: str
) -> None:
    work, root, began = WORKS[name](program, suite, tmp_path), program.workspace, time.monotonic()

    runs = Counter[str]()
    with work.around():
        if name == "tune" or not verdicts.texts:
            calm = Killer(program)
            work.complete(root / "undisturbed", calm)
            verdicts.take(program, calm.lived_s)
        calm = Killer(program, extra=verdicts.variables(program, tmp_path))
        expected = work.complete(root / "recorded", calm)
        recorded = Killer(program, KILLS - REAL, calm.lived_s, verdicts.variables(program, tmp_path))
        while not recorded.over:
            assert work.complete(root / f"recorded {runs['recorded']}", recorded) == expected
            runs["recorded"] += 1
            print(f"{name}: {recorded.kills.total()} kills, {time.monotonic() - began:.0f} s", flush=True)
        killer = Killer(program, REAL, verdicts.seconds)
        while not killer.over:
            program.cache = tmp_path / f"cache {runs['real']}"  # so that compilers are killed, too
            assert work.complete(root / f"real {runs['real']}", killer) == expected
            runs["real"] += 1
    took = f"{dict(runs)} runs to their end, {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.0f}"
    print(f"{name}, seed {SEED}: {dict(killer.kills)}, with recorded verdicts {dict(recorded.kills)}, {took}")
    if isinstance(work, Generate):
        print(f"{work.asked} questions, {work.asked_again} of them again: their answers had not been stored")
    assert killer.kills.total() + recorded.kills.total() == KILLS
