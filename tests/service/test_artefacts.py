"""Artefacts from one cache of builds to another, and the machines that cannot use them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

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
from kernelproof.types import Build, BuildState, VerifySettings
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.prebuild import Prebuilt
from tests.db import samples

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
