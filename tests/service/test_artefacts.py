"""Artefacts from one cache of builds to another, and judges that cannot use them."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelproof.choices import Role
from kernelproof.client import Candidate, Client
from kernelproof.db.evaluations import Submitted
from kernelproof.db.queue import WorkerCapabilities
from kernelproof.service.artefacts import (
    TIMED_OUT_S,
    ArtefactStore,
    NoArtefact,
    build_key,
    fetch,
    is_published,
    open_artefacts,
    publish,
)
from kernelproof.service.worker import JudgeWorker
from kernelproof.types import Build, BuildState, VerifySettings
from kernelproof.verifier.engine.build_stage import Prebuilt
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.stop import Stop
from tests.cli import material
from tests.cli.program import Program, kill
from tests.db import samples
from tests.service.conftest import NO_PROGRAM, serving
from tests.service.test_launchers import until

KEY = "ab" * 32
OK = Build(key="1" * 64, state=BuildState.OK, name="one")
FAILED = Build(key="2" * 64, state=BuildState.ERROR, name="two", log="error: no")


@pytest.fixture
def store(tmp_path: Path) -> ArtefactStore:
    return open_artefacts(str(tmp_path / "artefacts"))


@pytest.fixture
def builder(tmp_path: Path) -> Iterator[Engine]:
    with Engine(cache=tmp_path / "builder") as engine:
        yield engine


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Engine]:
    with Engine(cache=tmp_path / "judge") as engine:
        yield engine


def test_a_judge_gets_builds_libraries_and_reasons(
    store: ArtefactStore, builder: Engine, judge: Engine
) -> None:
    made = [
        builder.builds.builder.keep(OK.model_copy(update={"key": digit * 64}), digit.encode() * 999)
        for digit in "3456"
    ]
    same = made[0].model_copy(update={"name": "under another name"})
    sent = Prebuilt((*made, FAILED), None, "trouble \ud800", "raised", {"a": made[1], "b": same, "c": FAILED})
    assert publish(sent, KEY, builder.builds.toolchain, store) and is_published(KEY, store)
    got = fetch(KEY, "cpp", judge.builds, store)
    assert (got.trouble, got.raised, got.sandbox) == ("trouble ?", "raised", None)
    assert [build.key for build in got.builds] == [build.key for build in sent.builds]
    assert list(got.contents) == ["a", "b", "c"] and got.contents["b"].name == "under another name"
    for here, there in zip(
        (*got.builds, *got.contents.values()), (*sent.builds, *sent.contents.values()), strict=True
    ):
        assert here.model_copy(update={"library": None}) == there.model_copy(update={"library": None})
        if there.library is not None:
            assert here.library is not None and here.library != there.library
            assert Path(here.library).read_bytes() == Path(there.library).read_bytes()
            assert judge.builds.builder.kept(there.key) is not None


def test_another_machine_builds_by_itself(store: ArtefactStore, builder: Engine, judge: Engine) -> None:
    here = builder.builds.toolchain
    native = Prebuilt((FAILED.model_copy(update={"commands": ("c++ -march=native",)}),), None)
    others = {
        "torch": here.model_copy(update={"torch": "0.0"}),
        "python": here.model_copy(update={"extension_suffix": ".other.so"}),
        "gpu": here.model_copy(update={"architecture": "0.0"}),
        "cpu": here.model_copy(update={"cpu": "another"}),
    }
    plain = Prebuilt((FAILED,), None)
    unfit = {("torch", "cpp"), ("python", "cpp"), ("torch", "cuda"), ("python", "cuda"), ("gpu", "cuda")}
    for what, toolchain in others.items():
        for name in ("cpp", "cuda"):
            for prebuilt in (plain, native):
                assert publish(prebuilt, KEY, toolchain, store)
                if (what, name) in unfit or (what == "cpu" and prebuilt is native):
                    with pytest.raises(NoArtefact, match="another torch, GPU or CPU"):
                        fetch(KEY, name, judge.builds, store)
                else:
                    assert fetch(KEY, name, judge.builds, store).builds == prebuilt.builds


def test_failures_of_ours_are_not_published(store: ArtefactStore, builder: Engine) -> None:
    for state in (BuildState.INFRASTRUCTURE, BuildState.UNAVAILABLE):
        ours = FAILED.model_copy(update={"state": state})
        for sent in (Prebuilt((ours,), None), Prebuilt((), None, contents={"a": ours})):
            assert not publish(sent, KEY, builder.builds.toolchain, store)
    assert not is_published(KEY, store)


def test_a_build_that_timed_out_is_tried_again_after_an_hour_and_still_judged(
    store: ArtefactStore, builder: Engine, judge: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Prebuilt((FAILED.model_copy(update={"state": BuildState.TIMEOUT}),), None)
    assert publish(late, KEY, builder.builds.toolchain, store) and is_published(KEY, store)
    now = time.time()
    monkeypatch.setattr("kernelproof.service.artefacts.time.time", lambda: now + TIMED_OUT_S + 60)
    assert not is_published(KEY, store)
    assert fetch(KEY, "cpp", judge.builds, store).builds == late.builds


def test_an_entry_under_another_name_or_with_another_library_is_refused(
    store: ArtefactStore, builder: Engine, judge: Engine
) -> None:
    built = builder.builds.builder.keep(OK, b"library")
    assert publish(Prebuilt((built,), None), KEY, builder.builds.toolchain, store)
    content = store.get(KEY)
    assert content is not None
    other = "cd" * 32
    for key, entry in ((other, content), (KEY, content[:-7] + b"LIBRARY"), (KEY, content[:-1])):
        store.put(key, entry)
        with pytest.raises(NoArtefact, match="is not one of this version"):
            fetch(key, "cpp", judge.builds, store)
    assert judge.builds.builder.kept(OK.key) is None


def test_a_library_that_left_the_cache_is_not_published(store: ArtefactStore, builder: Engine) -> None:
    built = builder.builds.builder.keep(OK, b"library")
    Path(str(built.library)).write_bytes(b"LIBRARY")
    with pytest.raises(NoArtefact, match="is damaged"):
        publish(Prebuilt((built,), None), KEY, builder.builds.toolchain, store)
    Path(str(built.library)).unlink()
    with pytest.raises(NoArtefact, match="was removed"):
        publish(Prebuilt((built,), None), KEY, builder.builds.toolchain, store)


def test_equal_work_has_equal_keys(builder: Engine) -> None:
    toolchain, settings = builder.builds.toolchain, VerifySettings(backend="cpp")
    problem, other = samples.problem(), samples.problem().model_copy(update={"sha256": "0" * 64})
    key = build_key("source", problem, settings, toolchain)
    assert key == build_key("source", problem, settings.model_copy(update={"trials": 99}), toolchain)
    different = [
        build_key("another", problem, settings, toolchain),
        build_key("source", other, settings, toolchain),
        build_key("source", problem, settings.model_copy(update={"build_seconds": 1.0}), toolchain),
        build_key("source", problem, settings, toolchain.model_copy(update={"cxx_version": "g++ 99"})),
        build_key("source", problem, settings, toolchain.model_copy(update={"architecture": "0.0"})),
        build_key("source", problem, settings, toolchain.model_copy(update={"cpu": "another"})),
    ]
    assert len({key, *different}) == 7


def away(root: Path) -> None:
    """The store cannot be reached."""
    shutil.rmtree(root)
    root.write_text("a file where a folder should be")


def is_record(root: Path) -> None:
    """The entry is whole, and is no record of a build."""
    open_artefacts(str(root)).put(KEY, b"[1, 2, 3]\n")


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "gone": (lambda root: (root / "ab" / KEY).unlink(), "is not in the store, or damaged"),
    "cut short": (lambda root: (root / "ab" / KEY).write_bytes(b"{"), "is not in the store, or damaged"),
    "of an older version": (lambda root: (root / "ab" / KEY).write_bytes(b'{"format":1}'), "or damaged"),
    "no record": (is_record, "is not in the store, or damaged"),
    "away": (away, "cannot be used"),
}


@pytest.mark.parametrize(("spoil", "why"), SPOILED.values(), ids=SPOILED)
def test_it_is_built_here(
    tmp_path: Path,
    empty_database: Path,
    spoil: Callable[[Path], object],
    why: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kernelproof.service.worker.STORE_PATIENCE_S", 0.1)
    monkeypatch.setattr("kernelproof.service.worker.AGAIN_S", 0.05)
    root = tmp_path / "artefacts"
    artefacts = open_artefacts(str(root))
    artefacts.put(KEY, b"{}\n")
    spoil(root)
    sent = Submitted(
        problem=samples.problem(), text="text", settings=samples.CPP_SMALL, request_sha256="0" * 64
    )
    backends = (samples.CPP_SMALL.backend,)
    with samples.new_store(tmp_path, empty_database) as store, Engine(cache=tmp_path / "cache") as engine:
        evaluations, queue = store.service.evaluations, store.service.queue
        [stored] = evaluations.submit("c", [sent], most=1)
        [job] = queue.take("b", 1, WorkerCapabilities(Role.BUILD, backends))
        assert queue.finish_build(job.id, job.token, KEY)
        judging = JudgeWorker(store, engine, backends, None, artefacts, threading.Event(), Role.JUDGE)
        [job] = queue.take(judging.owner, 1, judging.capabilities)
        with caplog.at_level(logging.WARNING, "kernelproof.service"):
            assert judging.do(job, Stop()) is True
        result = evaluations.get(stored.id)
        assert result is not None and result.state == "done"
    [line] = [each.getMessage() for each in caplog.records]
    assert f"evaluation {stored.id} is built here" in line and why in line


@contextmanager
def daemons(program: Program, *roles: str) -> Iterator[None]:
    """Daemons of these roles that share a directory of artefacts."""
    running = [
        program.start("service", "workers", "--role", role, "--artefacts", "artefacts") for role in roles
    ]
    try:
        yield
    finally:
        for each in running:
            kill(each)


STATUSES = ["no_code", "wrong_output", "build_error", "correct"]


@pytest.mark.ci
def test_what_builders_publish_gets_the_verdicts_that_a_worker_gives(program: Program, suite: Path) -> None:
    texts = [NO_PROGRAM, material.wrong("wrong"), material.uncompilable(), material.right()]
    candidates = [Candidate(text, "relu") for text in texts]
    with serving(program, suite, "--no-worker") as service, Client(service.url) as client:
        sent = client.submit(candidates)
        with daemons(program, "build", "judge"):
            apart = client.evaluate_many(candidates)
            assert [client.get(each.id).ended for each in sent] == [True] * 4
        with daemons(program, "all"):
            together = client.evaluate_many(candidates)
    assert [each.status for each in apart] == STATUSES
    for one, other in zip(apart, together, strict=True):
        assert (one.status, one.raw["result"]["reason"]) == (other.status, other.raw["result"]["reason"])


@pytest.mark.ci
def test_a_judge_whose_artefacts_are_gone_or_damaged_builds_by_itself(program: Program, suite: Path) -> None:
    texts = [NO_PROGRAM, material.wrong("gone"), material.uncompilable(), material.right()]
    with serving(program, suite, "--no-worker") as service, Client(service.url) as client:
        sent = client.submit([Candidate(text, "relu") for text in texts])
        with daemons(program, "build"):
            until(lambda: all(client.get(each.id).state == "built" for each in sent), "not all are built")
        entries = [path for path in (program.workspace / "artefacts").glob("??/*") if path.is_file()]
        assert len(entries) == 3
        entries[0].unlink()
        for entry in entries[1:]:
            entry.write_bytes(entry.read_bytes()[:-1])
        with daemons(program, "judge"):
            assert [client.wait(each.id).status for each in sent] == STATUSES
