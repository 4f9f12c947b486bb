"""`kernelproof artefacts`: what it removes, what it never removes, and what daemons meet meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelproof.bounds import DAY_S
from kernelproof.choices import Role
from kernelproof.db.evaluation_records import NoResult, Submitted, Wanted
from kernelproof.db.store import Store
from kernelproof.engine.engine import Engine
from kernelproof.engine.stop import Stop
from kernelproof.hashing import sha256_text
from kernelproof.service.artefact_places import open_artefacts
from kernelproof.service.artefact_pruning import Pruned, prune, survey, would_prune
from kernelproof.service.artefact_store import ArtefactStore, Entry, StoreAway
from kernelproof.service.artefacts import Artefact, Target
from kernelproof.service.worker import Judging
from kernelproof.types import Build, BuildState
from tests.cli.program import Program
from tests.db import samples

TARGET = Target(torch=("2.13.0", None, None), suffix=".so", architecture="", cpu="x")
BUILDER = Wanted(Role.BUILD, ("cpp",))
JUDGE = Wanted(Role.JUDGE, ("cpp",))


class Cluster:
    """A database and a store of artefacts, and a builder and a judge that compile nothing."""

    def __init__(self, store: Store, artefacts: ArtefactStore) -> None:
        self.store, self.artefacts = store, artefacts

    def publish(self, name: str, *libraries: bytes) -> str:
        """As a builder does: libraries, then their record, then a word to the database."""
        builds = [
            Build(
                key=sha256_text(name), state=BuildState.OK, name=name, library_sha256=self.artefacts.put(data)
            )
            for data in libraries
        ]
        record = Artefact(
            target=TARGET,
            made=tuple(builds),
            builds=tuple(range(len(builds))),
            contents={},
            sandbox=None,
            trouble="",
            raised="",
        )
        sha256 = self.artefacts.put(json.dumps(record.model_dump(mode="json")).encode())
        self.store.service.artefacts.remember(sha256_text(name), sha256, timed_out=False)
        return sha256

    def send(self, artefact: str) -> str:
        """An evaluation that was built; its id."""
        sent = Submitted(
            problem=samples.problem(), text="text", settings=samples.CPP_SMALL, request_sha256="0" * 64
        )
        [stored] = self.store.service.evaluations.submit("c", [sent], most=100)
        [taken] = self.store.service.takings.take("b", 1, BUILDER)
        assert self.store.service.takings.built(taken.id, taken.token, artefact)
        return stored.id

    def judge_all(self) -> None:
        """Ends every evaluation that is built."""
        takings = self.store.service.takings
        for taken in takings.take("j", 100, JUDGE):
            assert takings.finish(taken.id, taken.token, NoResult("tried", infrastructure=False))

    def prune(self, days: float | None = None, most: int | None = None) -> Pruned:
        known = self.store.service.artefacts
        unused = None if days is None else days * DAY_S
        return prune(self.artefacts, known, survey(self.artefacts, known), unused_s=unused, most_bytes=most)

    def would_prune(self, days: float | None = None, most: int | None = None) -> Pruned:
        unused = None if days is None else days * DAY_S
        found = survey(self.artefacts, self.store.service.artefacts)
        return would_prune(found, unused_s=unused, most_bytes=most)

    def hashes(self) -> set[str]:
        return {entry.sha256 for entry in self.artefacts.entries()}

    def known(self, name: str) -> str | None:
        return self.store.service.artefacts.known(sha256_text(name))


@pytest.fixture(params=["directory", "memory"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "directory":
        yield str(tmp_path / "artefacts")
        return
    fsspec: Any = pytest.importorskip("fsspec")
    root = f"/{uuid.uuid4().hex}"
    yield f"memory:/{root}"
    if fsspec.filesystem("memory").exists(root):
        fsspec.filesystem("memory").rm(root, recursive=True)


@pytest.fixture
def cluster(tmp_path: Path, empty_database: Path, address: str) -> Iterator[Cluster]:
    with samples.new_store(tmp_path, empty_database) as store:
        yield Cluster(store, open_artefacts(address))


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the database's clock to so many days from now."""

    def shift(days: float) -> None:
        clock = SimpleNamespace(time=lambda: time.time() + days * DAY_S)
        monkeypatch.setattr("kernelproof.db.clock.time", clock)

    return shift


def test_what_nobody_used_for_long_goes_with_its_libraries(
    cluster: Cluster, later: Callable[[float], None]
) -> None:
    cluster.publish("old", b"library 1", b"shared")
    kept = cluster.publish("used", b"library 2", b"shared")
    libraries = cluster.hashes()
    later(20)
    cluster.send(kept)
    cluster.judge_all()
    later(40)
    planned = cluster.would_prune(days=30)
    assert planned.removed.entries == 2 and cluster.hashes() == libraries, "the record and library 1"
    assert cluster.prune(days=30) == planned
    assert cluster.known("old") is None, "a builder would name it again"
    assert cluster.known("used") == kept
    assert kept in cluster.hashes() and len(cluster.hashes()) == 3
    later(51)
    assert cluster.prune(days=30).left.entries == 0 and cluster.hashes() == set()
    assert cluster.prune(days=30).removed.entries == 0


def test_what_an_evaluation_needs_stays_in_every_state(
    cluster: Cluster, later: Callable[[float], None]
) -> None:
    artefact = cluster.publish("one", b"library")
    cluster.send(artefact)
    later(100)
    assert cluster.prune(days=0, most=0).removed.entries == 0, "built"
    cluster.store.service.takings.take("j", 1, JUDGE)
    assert cluster.prune(days=0, most=0).removed.entries == 0, "running"
    cluster.store.service.takings.give_back("j")
    cluster.judge_all()
    assert cluster.prune(days=0, most=0).removed.entries == 0, "it was used of late"
    later(101)
    assert cluster.prune(days=0).removed.entries == 2


def test_what_was_published_of_late_stays_whatever_is_asked(
    cluster: Cluster, later: Callable[[float], None]
) -> None:
    cluster.publish("one", b"library")
    assert cluster.prune(days=0, most=0).removed.entries == 0
    later(1)
    assert cluster.prune(days=0).left.entries == 0


def test_the_least_recently_used_go_until_the_rest_is_small_enough(
    cluster: Cluster, later: Callable[[float], None]
) -> None:
    names = [cluster.publish(str(number), bytes([number]) * 100_000) for number in range(4)]
    for day, number in enumerate((2, 0, 3, 1)):
        later(10 + day)
        cluster.send(names[number])
        cluster.judge_all()
    later(20)
    done = cluster.prune(most=250_000)
    assert done.removed.entries == 4 and done.left.bytes <= 250_000
    assert [cluster.known(str(number)) is not None for number in range(4)] == [False, True, False, True]
    assert {names[1], names[3]} <= cluster.hashes()
    assert cluster.prune(most=250_000).removed.entries == 0


def test_what_becomes_needed_after_the_listing_stays(
    cluster: Cluster, later: Callable[[float], None]
) -> None:
    artefact = cluster.publish("one", b"library")
    later(40)
    known = cluster.store.service.artefacts
    found = survey(cluster.artefacts, known)
    cluster.send(artefact)
    done = prune(cluster.artefacts, known, found, unused_s=DAY_S, most_bytes=None)
    assert done.removed.entries == 0 and cluster.known("one") == artefact


def test_a_publisher_makes_an_old_entry_new(address: str, tmp_path: Path) -> None:
    """So its library is not removed before its record is known."""
    artefacts = open_artefacts(address)
    sha256 = artefacts.put(b"library")
    if address.startswith("memory"):
        import fsspec

        path = f"{address.removeprefix('memory:/')}/{sha256[:2]}/{sha256}"
        stored = fsspec.filesystem("memory").store[path]
        stored.created = stored.created.replace(year=2020)
    else:
        os.utime(tmp_path / "artefacts" / sha256[:2] / sha256, (1e9, 1e9))
    [old] = artefacts.entries()
    assert old.written < time.time() - DAY_S
    artefacts.put(b"library")
    [new] = artefacts.entries()
    assert new.written > time.time() - DAY_S
    if not address.startswith("memory"):
        assert not artefacts.remove(old), "it was put again since it was listed"


def test_a_judge_whose_artefact_was_removed_has_it_built_again(
    cluster: Cluster, later: Callable[[float], None], tmp_path: Path
) -> None:
    """A builder learnt the artefact's name before the pruning, and told it after."""
    artefact = cluster.publish("one", b"library")
    later(40)
    named = cluster.known("one")
    assert named == artefact and cluster.prune(days=30).left.entries == 0
    number = cluster.send(named)
    with Engine(cache=tmp_path / "cache") as engine:
        judging = Judging(
            cluster.store, engine, ("cpp",), None, cluster.artefacts, threading.Event(), Role.JUDGE
        )
        [taken] = cluster.store.service.takings.take(judging.owner, 1, judging.wanted)
        assert judging.do(taken, Stop()) is True
    found = cluster.store.service.evaluations.get(number)
    assert found is not None and (found.state, found.rebuilds) == ("queued", 1)


@pytest.mark.parametrize("address", ["directory"], indirect=True)  # memory:// is for one thread
def test_two_at_once_remove_each_entry_once(cluster: Cluster, later: Callable[[float], None]) -> None:
    for number in range(40):
        cluster.publish(str(number), bytes([number]))
    later(40)
    with ThreadPoolExecutor(4) as threads:
        done = [each.result() for each in [threads.submit(cluster.prune, days=30) for _ in range(4)]]
    assert cluster.hashes() == set() and [each.trouble for each in done] == [""] * 4
    assert sum(each.removed.entries for each in done) == 80


def test_one_that_is_stopped_midway_is_finished_by_the_next(
    cluster: Cluster, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        cluster.publish(str(number), bytes([number]))
    later(40)
    remove, left = cluster.artefacts.remove, iter(range(7))

    def stopping(entry: Entry) -> bool:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return remove(entry)

    with monkeypatch.context() as patch:
        patch.setattr(cluster.artefacts, "remove", stopping)
        with pytest.raises(KeyboardInterrupt):
            cluster.prune(days=30)
    assert len(cluster.hashes()) == 13
    assert [cluster.known(str(number)) for number in range(10)] == [None] * 10, (
        "forgotten before it is removed"
    )
    assert cluster.prune(days=30).removed.entries == 13 and cluster.hashes() == set()


def test_what_cannot_be_removed_is_told(
    cluster: Cluster, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.publish("one", b"library")
    later(40)

    def refuse(_: Entry) -> bool:
        raise StoreAway("no right to delete")

    monkeypatch.setattr(cluster.artefacts, "remove", refuse)
    done = cluster.prune(days=30)
    assert (done.removed.entries, done.left.entries, done.trouble) == (0, 2, "no right to delete")


@pytest.fixture
def old(program: Program, empty_database: Path) -> Path:
    """A directory of an artefact that is forty days old, which nothing needs, beside files of others."""
    place = program.workspace / "artefacts"
    with samples.new_store(program.workspace, empty_database) as store:
        store.service.artefacts.remember("0" * 64, "1" * 64, timed_out=False)
    artefacts = open_artefacts(str(place))
    sha256 = artefacts.put(b"x" * 2048)
    (place / sha256[:2] / ("." + "0" * 32)).write_bytes(b"unfinished")
    (place / "notes").mkdir()
    (place / "notes" / "readme").write_text("of others")
    (place / sha256[:2] / "readme").write_text("of others")
    for path in place.rglob("*"):
        os.utime(path, (time.time() - 40 * DAY_S,) * 2)
    return place


@pytest.mark.ci
def test_the_command_says_what_it_removes_and_leaves_files_of_others(program: Program, old: Path) -> None:
    said = program.run("artefacts", "info", "--artefacts", old).stdout
    assert "2 entries, 2.01 KiB" in said and "not used for 30 days" in said
    told = json.loads(program.run("artefacts", "info", "--artefacts", old, "--json").stdout)
    assert told["needed"] == {"entries": 0, "bytes": 0} and told["not used for 30 days"]["entries"] == 2
    prune_old = ("artefacts", "prune", "--artefacts", old, "--older-than", 30)
    assert program.run(*prune_old, "--dry-run").stdout == (
        "would remove 2 entries, 2.01 KiB; left 0 entries, 0 bytes\n"
    )
    assert program.run(*prune_old).stdout == "removed 2 entries, 2.01 KiB; left 0 entries, 0 bytes\n"
    again = json.loads(program.run(*prune_old, "--json").stdout)
    assert again == {"removed": {"entries": 0, "bytes": 0}, "left": {"entries": 0, "bytes": 0}, "trouble": ""}
    assert {path.name for path in old.rglob("*") if path.is_file()} == {"readme"}


def test_mistakes_get_a_line(program: Program, old: Path) -> None:
    def complaint(*words: object, code: int) -> str:
        told = program.run("artefacts", *words, code=code).stderr
        assert told.count("\n") == 1
        return told

    assert "give --older-than" in complaint("prune", "--artefacts", old, code=2)
    absent = program.workspace / "absent"
    assert f"there is no directory {absent}" in complaint("info", "--artefacts", absent, code=2)
    assert not absent.exists()
    assert "nosuch" in complaint("info", "--artefacts", "nosuch://host/folder", code=2)
    assert "is no size" in complaint("prune", "--artefacts", old, "--to", "much", code=2)
    shutil.rmtree(program.workspace / "db")
    assert "artefacts" not in complaint("prune", "--artefacts", old, "--older-than", 0, code=2)
    assert any(old.rglob("?" * 64)), "without a database nothing is known to be old"
