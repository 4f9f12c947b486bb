"""The artefact store: a directory, and what fsspec reaches."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kernelproof.choices import DAY_S
from kernelproof.errors import UsageError
from kernelproof.service.artefacts import ArtefactStore, StoreAway, open_artefacts
from tests.cli.program import Program

KEY = "ab" * 32
DATA = b"a record\n" + b"a library" * 1000


class Place:
    """A store, and the way around it to the file of KEY."""

    def __init__(
        self,
        text: str,
        read: Callable[[], bytes],
        write: Callable[[bytes], object],
        age: Callable[[float], None],
    ) -> None:
        self.text, self.read, self.write, self.age = text, read, write, age
        self.store: ArtefactStore = open_artefacts(text)


@pytest.fixture(params=["directory", "file address", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param != "memory":
        file = tmp_path / "artefacts" / KEY[:2] / KEY
        text = str(tmp_path / "artefacts")
        address = "file://" + text if "address" in request.param else text
        yield Place(address, file.read_bytes, file.write_bytes, lambda seconds: set_back(file, seconds))
        return
    fsspec: Any = pytest.importorskip("fsspec")
    system, root = fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}"
    path = f"{root}/{KEY[:2]}/{KEY}"

    def age(seconds: float) -> None:
        stored = system.store[path]
        stored.created = stored.modified = type(stored.created).fromtimestamp(
            time.time() - seconds, stored.created.tzinfo
        )

    yield Place(
        f"memory:/{root}", lambda: system.cat_file(path), lambda data: system.pipe_file(path, data), age
    )
    if system.exists(root):
        system.rm(root, recursive=True)


def set_back(file: Path, seconds: float) -> None:
    """Makes a file older."""
    os.utime(file, (time.time() - seconds,) * 2)


def test_what_was_put_is_there_for_all_who_open_the_store(place: Place) -> None:
    assert place.store.get(KEY) is None
    place.store.put(KEY, DATA)
    place.store.put(KEY, DATA)
    assert open_artefacts(place.text).get(KEY) == DATA
    place.store.put(KEY, b"another build")
    assert place.store.get(KEY) == b"another build"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda whole: whole[:-1],
        lambda whole: whole[:40],
        lambda whole: whole[:-1] + b"?",
        lambda whole: b"",
        lambda whole: whole + b"more",
        lambda whole: DATA,
    ],
)
def test_a_damaged_entry_is_not_used_and_the_next_builder_replaces_it(
    place: Place, spoil: Callable[[bytes], bytes]
) -> None:
    place.store.put(KEY, DATA)
    place.write(spoil(place.read()))
    assert place.store.get(KEY) is None
    place.store.put(KEY, DATA)
    assert place.store.get(KEY) == DATA


def test_a_reader_in_a_directory_sees_all_of_an_entry_or_nothing(tmp_path: Path) -> None:
    """Two builders put other content under the same keys while a reader asks for them; nothing partial is
    left."""
    keys = [hashlib.sha256(bytes([number])).hexdigest() for number in range(8)]
    contents = [bytes([number]) * (1 << 20) for number in range(2)]
    stop, wrong, seen = threading.Event(), list[str](), set[str]()

    def read() -> None:
        store = open_artefacts(str(tmp_path))
        while not stop.is_set() or len(seen) < len(keys):
            for key in keys:
                content = store.get(key)
                if content in contents:
                    seen.add(key)
                elif content is not None or key in seen:
                    wrong.append(key)
                    return

    reader = threading.Thread(target=read)
    reader.start()
    writers = [threading.Thread(target=_put_all, args=(tmp_path, keys, content)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    stop.set()
    reader.join()
    assert wrong == [] and seen == set(keys)
    files = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(files) == sorted(keys), "a partial file was left"


def _put_all(root: Path, keys: list[str], content: bytes) -> None:
    store = open_artefacts(str(root))
    for key in keys:
        store.put(key, content)


def test_a_directory_that_cannot_be_used_is_a_store_that_is_away(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no directory")
    with pytest.raises(StoreAway, match="cannot be used"):
        open_artefacts(str(file / "below"))
    store = open_artefacts(str(tmp_path / "artefacts"))
    (tmp_path / "artefacts" / KEY[:2]).write_text("a file where a folder should be")
    with pytest.raises(StoreAway, match="cannot be used"):
        store.put(KEY, DATA)
    with pytest.raises(StoreAway, match="cannot be used"):
        store.get(KEY)


def test_an_address_that_nobody_knows_is_refused_without_the_secret_in_it() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(UsageError) as raised:
        open_artefacts("nosuch://user:secret@host/folder")
    assert "nosuch://" in str(raised.value) and "secret" not in str(raised.value)


def test_old_entries_are_pruned_and_recent_ones_stay_whatever_is_asked(place: Place) -> None:
    place.store.put(KEY, DATA)
    place.store.put("cd" * 32, DATA)
    assert place.store.prune(unused_s=0, target=0).builds == 0
    place.age(2 * DAY_S)
    assert place.store.prune(unused_s=3 * DAY_S).builds == 0
    removal = place.store.prune(unused_s=DAY_S)
    assert (removal.builds, removal.left_builds, removal.trouble) == (1, 1, "")
    assert removal.bytes == removal.left_bytes > len(DATA)
    assert place.store.get(KEY) is None and place.store.get("cd" * 32) == DATA


def filled(root: Path, count: int) -> ArtefactStore:
    """A directory with so many entries of 1,000 bytes, one written each hour, the last ten hours ago."""
    store = open_artefacts(str(root))
    for number in range(count):
        key = f"{number:064x}"
        store.put(key, bytes(935))
        set_back(root / key[:2] / key, 3600.0 * (10 + count - number))
    return store


def test_the_oldest_go_until_the_rest_is_small_enough(tmp_path: Path) -> None:
    store = filled(tmp_path, 6)
    removal = store.prune(target=4200)
    assert (removal.builds, removal.left_builds, removal.left_bytes) == (2, 4, 4000)
    assert [store.get(f"{number:064x}") is None for number in range(6)] == [True, True, *[False] * 4]
    assert store.prune(target=4200).builds == 0


def test_two_that_prune_at_once_leave_nothing_and_fail_at_nothing(tmp_path: Path) -> None:
    store = filled(tmp_path, 60)
    with ThreadPoolExecutor(4) as threads:
        removals = list(threads.map(lambda _: store.prune(unused_s=0), range(4)))
    assert store.entries() == [] and [each.trouble for each in removals] == [""] * 4


def test_what_cannot_be_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path, 2)

    def refuse(_: str) -> None:
        raise PermissionError(1, "no right to delete")

    monkeypatch.setattr(store, "_remove", refuse)
    removal = store.prune(unused_s=0)
    assert (removal.builds, removal.left_builds) == (0, 2) and "no right to delete" in removal.trouble


def test_the_command_removes_what_killed_builders_left_and_no_files_of_others(program: Program) -> None:
    root = program.workspace / "artefacts"
    filled(root, 2)
    (root / "00" / f"{KEY}.{'0' * 32}").write_bytes(b"of another folder")
    (root / "ab").mkdir()
    (root / "ab" / f"{KEY}.{'0' * 32}").write_bytes(b"unfinished")
    (root / "notes").mkdir()
    (root / "notes" / "readme").write_text("of others")
    (root / "00" / "readme").write_text("of others")
    for path in root.rglob("*"):
        set_back(path, 40 * DAY_S)
    prune = ("cache", "prune", "--artefacts", root)
    assert program.run(*prune, "--older-than", 60).stdout.startswith("removed 0 builds")
    assert program.run(*prune, "--older-than", 30).stdout.startswith("removed 3 builds")
    left = {path.name for path in root.rglob("*") if path.is_file()}
    assert left == {"readme", f"{KEY}.{'0' * 32}"}


def test_mistakes_get_a_line(program: Program) -> None:
    def complaint(*words: object, code: int) -> str:
        error = program.run("cache", "prune", "--artefacts", *words, code=code).stderr
        assert error.count("\n") == 1
        return error

    assert "give --older-than" in complaint(".", code=2)
    absent = program.workspace / "absent"
    assert f"there is no directory {absent}" in complaint(absent, "--to", 0, code=2)
    assert not absent.exists()
    assert "nosuch" in complaint("nosuch://host/folder", "--to", 0, code=2)
    assert "is no size" in complaint(".", "--to", "much", code=2)
