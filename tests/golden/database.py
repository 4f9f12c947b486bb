"""Makes the golden database and bundle: a workspace in which the commands ran that fill every table."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from kernelproof.client import Candidate, Client
from kernelproof.db.store import open_store
from tests import batchserver
from tests.cli import material
from tests.cli.conftest import working_in
from tests.cli.program import Program, kill, kill_tree
from tests.golden.loading import BUNDLE, CONFIG, DATABASE, FILES, scripted_provider
from tests.service.conftest import NO_PROGRAM, serving

QUICK = ("--backend", "cpp", "--rigor", "quick", "--seconds", "0.5", "--trials", "1")
UNTIMED = ("--backend", "cpp", "--no-measure", "--trials", "1")
SUITE = ("--suite", "problems")
FIRST_ANSWERS = {
    "level1/1 0 1": material.fenced(material.uncompilable("first")),
    "level1/1 0 2": material.fenced(material.right("second")),
    "level1/1 1 1": material.fenced(material.uncompilable("third")),
}
"""What the model of the unfinished run said before it was killed: sample 0 is over, sample 1 is being judged,
and the others were never answered."""
TUNED = "// tune: STEPS = 40 | 80\nconstexpr int STEPS = 40;"


PATIENT_S = 1200.0
"""Most that a command may take, on a loaded machine."""


def make() -> None:
    """Writes the database and the bundle anew. Takes minutes."""
    folder = Path(tempfile.mkdtemp(prefix="golden-"))
    workspace = folder / "workspace"
    workspace.mkdir()
    shutil.copytree(FILES / "problems", workspace / "problems")
    shutil.copy(CONFIG, workspace)
    with working_in(workspace, folder / "cache") as program:
        _generated(program)
        _verified(program)
        _imported(program, folder)
        _tuned(program)
        _judged_again(program)
        _served(program)
        scripted_provider(program, folder / "packages")
        _killed(program)
        program.run("leaderboard")
        program.run("db", "vacuum")
    database = workspace / "db" / "attempts.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(database, DATABASE)
    shutil.rmtree(folder)


def _generated(program: Program) -> None:
    """Answers of models: the packaged recordings, a recording of our own, and a server's batch."""
    demo = ("level1/2", "level2/6", "--model", "replay:demo", "--samples", 2, "--turns", 2, "--run", "demo")
    program.run("generate", *demo, *UNTIMED, "--size", "small", seconds=PATIENT_S)
    programs = [material.right("one"), material.wrong("two"), material.uncompilable("three")]
    texts = [*programs, "I cannot write it."]
    answers = {
        ("level1/1", number, 1): material.answer(material.fenced(text)) for number, text in enumerate(texts)
    }
    answers["level1/2", 0, 1] = material.answer(material.fenced(material.sines("four")))
    answers["level1/2", 1, 1] = material.answer(material.sines("five")[:900], "length")
    answers["level1/2", 2, 1] = material.answer("")
    material.recording(program.workspace / "answers.jsonl", answers)
    whole = ("--model", "replay:answers.jsonl", "--samples", 5, *SUITE)
    program.run("generate", "all", *whole, *QUICK, "--run", "first", code=None, seconds=PATIENT_S)
    program.extra = {"OPENAI_API_KEY": "none"}
    with batchserver.serve() as server:
        asked = ("--model", "openai:some-fail", "--base-url", server.url, "--samples", 3, "--batch")
        more = ("--param", "top_p=0.9", *SUITE, *UNTIMED)
        program.run("generate", "level1/1", *asked, *more, code=None, seconds=PATIENT_S)
    program.extra = {}


def _verified(program: Program) -> None:
    candidates = program.workspace / "candidates"
    candidates.mkdir()
    (candidates / "level1_1_right.py").write_text(material.right("six"))
    (candidates / "level1_1_wrong.py").write_text(material.wrong("seven"))
    (candidates / "level1_1_signature.py").write_text(material.right("other").replace("(self, x)", "(self)"))
    (candidates / "level1_2_sines.py").write_text(material.sines("eight"))
    program.run("verify", candidates, *SUITE, *QUICK, "--run", "files", code=1, seconds=PATIENT_S)


def _imported(program: Program, folder: Path) -> None:
    """Programs of somebody else, with claims."""
    lines = [
        {
            "id": f"published {number}",
            "problem": "level1/1",
            "source": text,
            "claimed": {"correct": True, "runtime_ms": 0.1, "baseline_ms": 0.3, "device": "NVIDIA H100"},
        }
        for number, text in enumerate([material.right("nine"), material.wrong("ten")])
    ]
    file = program.workspace / "published.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    program.run("import", file.name, "--model", "published", *SUITE, *UNTIMED, seconds=PATIENT_S)


def _tuned(program: Program) -> None:
    body = "for (int k = 0; k < STEPS; ++k) value = k < 40 ? std::sin(value) : value;"
    (program.workspace / "tuned.py").write_text(material.candidate("tuned", body, TUNED))
    rules = ("--backend", "cpp", "--rigor", "quick", "--seconds", "0.2", "--output", "best.py")
    program.run("tune", "tuned.py", "--problem", "sines", *SUITE, *rules, seconds=PATIENT_S)


def _judged_again(program: Program) -> None:
    """Rejudged, reproduced, audited, retracted, tagged; and bundled."""
    program.run("runs", "rejudge", "first", "--trials", 2, "--no-measure", code=None, seconds=PATIENT_S)
    best = next(a.id for a in program.attempts() if a.run.name == "first" and a.status == "correct")
    program.run("reproduce", best, *SUITE, code=None, seconds=PATIENT_S)
    program.run("runs", "audit", "--sample", 1, "--seed", 7, "--run", "files", code=None, seconds=PATIENT_S)
    wrong = next(a.id for a in program.attempts() if a.run.name == "files" and a.status == "wrong_output")
    program.run("runs", "retract", wrong, "--reason", "an example of a retraction")
    program.run("runs", "tag", "first", "baseline", "published")
    sines = next(a.id for a in program.attempts() if a.run.name == "files" and a.key.problem_id == "level1/2")
    program.run("bundle", sines, "-o", "ranked.bundle")
    shutil.copy(program.workspace / "ranked.bundle", BUNDLE)


def _served(program: Program) -> None:
    """The evaluation service: builder, judge and worker; a caller; a GPU that no machine has."""
    suite = program.workspace / "problems"
    rules = {"measure": True, "rigor": "quick", "measure_seconds": 0.5}
    untimed = [Candidate(text, "relu") for text in (NO_PROGRAM, material.wrong("eleven"))]
    timed = [Candidate(material.sines("twelve"), "sines", settings=rules)]
    with serving(program, suite, "--no-worker") as service, Client(service.url) as client:
        for roles, candidates in ((("build", "judge"), untimed), (("all",), timed)):
            command = ("service", "workers", "--artefacts", "artefacts", "--role")
            running = [program.start(*command, role) for role in roles]
            client.evaluate_many(candidates)
            for each in running:
                kill(each)
        service.send(wait=0, problem="sines", label="waiting", idempotency_key="once", priority=3)
    with open_store(program.workspace / "db" / "attempts.sqlite") as store:
        uuid = "GPU-aaaaaaaa-1111-2222-3333-444444444444"
        store.service.gpus.take(uuid, "a judge", name="NVIDIA H200", host="box7")
        store.service.gpus.set_aside(uuid, "the driver reported Xid 79")
    program.run("service", "callers", "add", "trainer", "--quota", 512)


def _killed(program: Program) -> None:
    """The unfinished run: its command is killed while sample 1 is judged and others wait for answers."""
    (program.workspace / "answers.json").write_text(json.dumps(FIRST_ANSWERS))
    program.run("generate", "--config", CONFIG.name, "--samples", 1, seconds=PATIENT_S)
    process = program.start("generate", "--config", CONFIG.name)
    deadline = time.monotonic() + 120
    with closing(sqlite3.connect(program.workspace / "db" / "attempts.sqlite")) as connection:
        while not connection.execute(ANSWERED).fetchone():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.002)
    kill_tree(process)


ANSWERED = """SELECT 1 FROM attempts JOIN runs ON runs.id = run_id JOIN responses ON attempt_id = attempts.id
WHERE runs.name = 'unfinished' AND sample = 1"""
