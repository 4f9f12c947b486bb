"""What a candidate must not know is nowhere in its processes: read from outside while it is in forward.

A candidate waits in its first two calls and in two rounds of the timing. Each time its whole process tree
is stopped, and all that it holds is written to a file: memory, environments, command lines, descriptors.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from kernelproof.db.store import open_store
from kernelproof.jobs import Job, Judge, NewAttempt, Verdict
from kernelproof.jobs.judge import files_run
from kernelproof.problems import read_problem
from kernelproof.runs.candidates import CandidateInput, candidate_from_text
from kernelproof.runs.files import write_attempt
from kernelproof.types import AttemptKey, Problem, Response, Status, Verification, VerifySettings
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.referee.ledger import derived
from kernelproof.verifier.workers.shared_memory import MAX_SLOTS, MAX_SMALL_SLOTS
from kernelproof.workspace import Workspace, open_workspace
from tests.referee.snapshots import (
    finds,
    found_integers,
    found_windows,
    may_trace,
    snapshot,
    tree_of,
    windows,
)

pytestmark = pytest.mark.ci

HERE = Path(__file__).parent / "traced"
MINE = "candidate-marker-58c1d0e7"
OTHER = "other-attempt-marker-91f3aa02"
MOST_ROUNDS = 300
"""More inputs are not drawn for one pair: 200 rounds, a warm-up, an eighth of decoys with two seeds each."""
API_KEY = "sk-api-key-marker-4be27710"
PATIENCE_S = 120.0
TRIAL_HOLDS, TIMED_HOLDS = 2, 2
WINDOWS_OF_ONE = 64 * 128 // 8
"""Windows of float32 in one input; twice as many of float64."""
OTHER_SOURCE = f"""# {OTHER}
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 1.7 + 0.3
"""


@dataclass
class Hold:
    """One moment in a forward of the candidate's."""

    memory: Path
    """All that its processes held."""
    inputs: torch.Tensor
    """All inputs that it could reach then, as float32."""
    notes: int
    """How many of the notes it had written by then."""


@dataclass
class Trace:
    """One verification, seen from outside."""

    device: str
    problem: Problem
    workspace: Workspace
    other_files: Path
    holds: list[Hold] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    """What the candidate was told: at import, in the constructor, then one a call."""
    looked: dict[str, Any] = field(default_factory=dict)
    """What it got from the file system, by path, and of other processes."""
    verdict: Verification | None = None

    @property
    def timed(self) -> list[Hold]:
        return self.holds[TRIAL_HOLDS:]

    def told(self, hold: Hold) -> set[int]:
        """The seeds that messages had carried by then."""
        return {note["told"] for note in self.notes[: hold.notes] if note["told"] is not None}

    def reference(self, hold: Hold, dtype: torch.dtype) -> torch.Tensor:
        """What the problem makes of every input that the candidate could reach, computed as `dtype`."""
        loaded = LoadedProblem(self.problem, "full")
        model = loaded.construct(0, torch.device("cpu"))
        result: torch.Tensor = loaded.run(model, [hold.inputs.to(dtype)], 0)
        return result


class Follower:
    """Finds the candidate's process, takes what it holds when it waits, and lets it go on."""

    def __init__(self, trace: Trace, store: Path, since: float) -> None:
        self._trace, self._store, self._since = trace, store, since
        self._pid = 0

    def hold(self) -> None:
        """Waits for the next hold and takes what the candidate has; `go` ends it."""
        number = len(self._trace.holds) + 1
        self._await(number)
        cwd = Path(f"/proc/{self._pid}/cwd")
        referee = next(
            p.pid
            for p in psutil.Process(self._pid).parents()
            if "kernelproof.verifier.referee" in p.cmdline()
        )
        if not may_trace(self._pid):
            pytest.skip("this user may not read another process's memory (ptrace)")
        memory = self._store / f"held-{number}"
        snapshot(tree_of(self._pid, referee), self._since, memory)
        raw = bytearray((cwd / f"held-{number}.inputs").read_bytes())
        inputs = torch.frombuffer(raw, dtype=torch.float32)
        self._trace.notes = [json.loads(n) for n in (cwd / "notes.jsonl").read_text().splitlines()]
        self._trace.holds.append(Hold(memory, inputs, len(self._trace.notes)))

    def ask_for_holds(self) -> None:
        """From now on the candidate waits whenever it sees new inputs."""
        (Path(f"/proc/{self._pid}/cwd") / "hold").touch()

    def ask_for_no_more(self) -> None:
        """From its next release on the candidate goes on without waiting."""
        (Path(f"/proc/{self._pid}/cwd") / "hold").unlink()

    def go(self) -> None:
        """Lets the candidate go on from its last hold."""
        (Path(f"/proc/{self._pid}/cwd") / f"held-{len(self._trace.holds)}.go").touch()

    def look(self, paths: list[Path]) -> dict[str, Any]:
        """Has the held candidate open these paths, and whatever other processes show it."""
        cwd = Path(f"/proc/{self._pid}/cwd")
        (cwd / "paths.partial").write_text(json.dumps([str(path) for path in paths]))
        (cwd / "paths.partial").chmod(0o644)
        (cwd / "paths.partial").rename(cwd / "paths.json")
        deadline = time.monotonic() + PATIENCE_S
        while not (cwd / "looked.json").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        answer: dict[str, Any] = json.loads((cwd / "looked.json").read_text())
        return answer

    def _await(self, number: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            below = [self._pid] if self._pid else [p.pid for p in psutil.Process().children(recursive=True)]
            for pid in below:
                if _is_there(Path(f"/proc/{pid}/cwd") / f"held-{number}.ready"):
                    self._pid = pid
                    return
            assert time.monotonic() < deadline, f"the candidate never came to hold {number}"
            time.sleep(0.02)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a process that has just ended, or another user's
        return False


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def trace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cache: Path
) -> Iterator[Trace]:
    """One verification with a database, a key in the environment and another attempt before it."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("OPENAI_API_KEY", API_KEY)
        scratch = tmp_path_factory.mktemp("scratch")
        scratch.chmod(0o755)
        patch.setenv("TMPDIR", str(scratch))
        patch.setattr("tempfile.tempdir", None)
        patch.setenv("KERNELPROOF_LOCKS", str(tmp_path_factory.mktemp("locks")))  # no time is asserted
        workspace = open_workspace(tmp_path_factory.mktemp("workspace"))
        workspace.database.parent.mkdir()
        store = stack.enter_context(open_store(workspace.database))
        engine = stack.enter_context(Engine(cache))
        problem = read_problem(HERE / "problem.py")
        settings = VerifySettings(
            backend="cpp" if request.param == "cpu" else "cuda",
            own_kernel=False,
            trials=2,
            threads=1,
            measure_seconds=8.0,  # rounds in which it waits count
        )
        unmeasured = settings.model_copy(update={"measure": False})
        given = candidate_from_text("other", OTHER_SOURCE, problem)
        judge = Judge(engine, store)

        def job(given: CandidateInput, settings: VerifySettings) -> Job:
            keep = NewAttempt(files_run(settings, None), given.response)
            return Job(problem, given.extraction, settings, keep)

        other = judge.judge(job(given, unmeasured))
        assert other.verification is not None and other.verification.status is Status.CORRECT
        key = AttemptKey(problem_id=problem.id, problem_sha256=problem.sha256, sample=0, turn=1)
        response = Response(text=OTHER_SOURCE)
        files = write_attempt(workspace.generated, 1, key, response, other.extraction, other.verification)
        made = Trace(request.param, problem, workspace, files)
        source = (HERE / "candidate.py").read_text().replace("MARKER", MINE)
        follower = Follower(made, tmp_path_factory.mktemp("snapshots"), time.time() - 3600)
        timing = follower.ask_for_holds
        with ThreadPoolExecutor(1) as pool:
            done: Future[Verdict] = pool.submit(
                judge.judge,
                job(candidate_from_text("mine", source, problem), settings),
                lambda stage: timing() if stage == "timing" else None,
            )
            try:
                _follow(follower, made)
            except BaseException:
                engine.close()
                raise
            made.verdict = done.result(PATIENCE_S).verification
        yield made
        for hold in made.holds:
            hold.memory.unlink()


def _follow(follower: Follower, trace: Trace) -> None:
    for number in range(TRIAL_HOLDS + TIMED_HOLDS):
        follower.hold()
        if number == TRIAL_HOLDS + TIMED_HOLDS - 1:
            files = [trace.workspace.root, trace.workspace.database, trace.other_files]
            trace.looked = follower.look([*files, *trace.other_files.iterdir(), Path("candidate.py")])
            follower.ask_for_no_more()
        follower.go()


def test_the_run_was_what_it_should_be(trace: Trace) -> None:
    """Without this the tests below could pass by looking at something else."""
    assert trace.verdict is not None
    assert trace.verdict.measurement is not None, trace.verdict.reason
    assert len(trace.holds) == TRIAL_HOLDS + TIMED_HOLDS
    heads = [hold.inputs[:4].tolist() for hold in trace.timed]
    assert all(heads.count(head) == 1 for head in heads)
    assert all(len(windows(hold.inputs)) >= 2 * WINDOWS_OF_ONE for hold in trace.timed)


def test_what_it_does_hold_is_found(trace: Trace) -> None:
    """The positive control: its source, its inputs, the seeds it was told, its environment."""
    for hold in trace.holds:
        assert finds(hold.memory, MINE.encode())
        assert finds(hold.memory, b"HOME=")
        held = windows(hold.inputs)
        assert len(held) >= WINDOWS_OF_ONE // 2
        found = found_windows(hold.memory, held)
        assert len(found) >= (len(set(held)) if trace.device == "cpu" else 64)
    assert found_integers(trace.holds[0].memory, trace.told(trace.holds[0]))


@pytest.mark.parametrize(
    ("dtype", "least"), [(torch.float32, 0.5), (torch.float64, 1)], ids=["output", "truth"]
)
def test_nothing_that_the_reference_computes_is_there(trace: Trace, dtype: torch.dtype, least: float) -> None:
    """Neither in the trials nor while it is timed, where the baseline has computed the same inputs."""
    for hold in trace.holds:
        expected = windows(trace.reference(hold, dtype))
        assert len(expected) >= least * WINDOWS_OF_ONE
        assert not found_windows(hold.memory, expected)


def test_no_input_of_a_later_round_is_there(trace: Trace) -> None:
    for number, hold in enumerate(trace.holds):
        later = [window for after in trace.holds[number + 1 :] for window in windows(after.inputs)]
        now = set(windows(hold.inputs))
        assert not found_windows(hold.memory, set(later) - now)


def test_no_seed_but_those_it_was_told_is_there(trace: Trace) -> None:
    assert trace.verdict is not None
    for hold in trace.holds:
        roots = trace.verdict.seeds
        most = MOST_ROUNDS * (MAX_SLOTS if trace.device == "cpu" else MAX_SMALL_SLOTS)
        timed = {derived(roots["timed"], number) for number in range(1, most)}
        secret = {*roots.values(), *timed} - trace.told(hold)
        assert len(secret) > 10
        assert not found_integers(hold.memory, secret)


def test_no_seed_that_it_was_told_makes_inputs(trace: Trace) -> None:
    """Nor those of the call that it is told in: the seed of a call is for the model's own randomness."""
    loaded, device = LoadedProblem(trace.problem, "full"), torch.device(trace.device)
    seen = [note["head"] for note in trace.notes if "call" in note]
    assert len(seen) > 10
    told = {note["told"] for note in trace.notes if note["told"] is not None}
    for seed in {near for one in told for near in (one, one ^ 1, one + 1)}:
        (drawn,) = tensors(loaded.draw(seed, device))
        assert drawn.flatten()[:4].tolist() not in seen


def test_no_secret_of_ours_is_there(trace: Trace) -> None:
    """Neither the API key, nor where the database is, nor another attempt."""
    places = (trace.workspace.database, trace.workspace.root, trace.other_files)
    for mark in (API_KEY, OTHER, *map(str, places)):
        assert not [hold.memory.name for hold in trace.holds if finds(hold.memory, mark.encode())]
        assert mark not in json.dumps(trace.looked["processes"])


def test_no_file_of_ours_opens(trace: Trace) -> None:
    """The candidate itself tried: its own file opens, the database and the other attempt's files do not."""
    found = dict(trace.looked["paths"])
    own = found.pop("candidate.py")
    assert MINE in own["bytes"]
    assert len(found) >= 5
    assert {path: answer for path, answer in found.items() if "errno" not in answer} == {}
    assert any(line.startswith("/") or "HOME=" in line for line in trace.looked["processes"])
