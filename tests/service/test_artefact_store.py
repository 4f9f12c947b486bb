"""The artefact store: a directory, and what fsspec reaches."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelproof.errors import UsageError
from kernelproof.service.artefact_places import open_artefacts
from kernelproof.service.artefact_store import ArtefactLost, ArtefactStore, StoreAway

DATA = b"a library" * 1000
HASH = hashlib.sha256(DATA).hexdigest()
MOST = 1 << 20

Spoil = Callable[[bytes], None]
"""Puts these bytes in the place of DATA."""


class Place:
    """A store, and the way around it to what lies in it."""

    def __init__(self, text: str, write: Spoil, exists: Callable[[], bool]) -> None:
        self.text, self.write, self.exists = text, write, exists
        self.store: ArtefactStore = open_artefacts(text)


@pytest.fixture(params=["directory", "file address", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param != "memory":
        file = tmp_path / "artefacts" / HASH[:2] / HASH
        text = str(tmp_path / "artefacts")
        yield Place("file://" + text if "address" in request.param else text, file.write_bytes, file.exists)
        return
    fsspec: Any = pytest.importorskip("fsspec")
    system, root = fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}"
    path = f"{root}/{HASH[:2]}/{HASH}"
    yield Place(f"memory:/{root}", lambda data: system.pipe_file(path, data), lambda: system.exists(path))
    if system.exists(root):
        system.rm(root, recursive=True)


def test_what_was_put_is_there_for_all_who_open_the_store(place: Place) -> None:
    assert place.store.put(DATA) == HASH == place.store.put(DATA)
    assert open_artefacts(place.text).get(HASH, MOST) == DATA


def test_nothing_is_lost_by_a_name(place: Place) -> None:
    with pytest.raises(ArtefactLost, match="is not in the store"):
        place.store.get(HASH, MOST)


@pytest.mark.parametrize("content", [DATA[:-1], DATA[:-1] + b"?", b"", DATA + b"more"])
def test_what_does_not_have_its_hash_is_refused_and_removed_and_can_be_put_again(
    place: Place, content: bytes
) -> None:
    place.store.put(DATA)
    place.write(content)
    with pytest.raises(ArtefactLost, match="is spoiled"):
        place.store.get(HASH, MOST)
    assert not place.exists()
    with pytest.raises(ArtefactLost, match="is not in the store"):
        place.store.get(HASH, MOST)
    assert place.store.put(DATA) == HASH and place.store.get(HASH, MOST) == DATA


def test_what_is_larger_than_asked_for_is_refused(place: Place) -> None:
    place.store.put(DATA)
    assert place.store.get(HASH, len(DATA)) == DATA
    with pytest.raises(ArtefactLost, match="is spoiled"):
        place.store.get(HASH, len(DATA) - 1)


def test_a_shortened_entry_is_replaced_by_the_next_builder(place: Place) -> None:
    place.store.put(DATA)
    place.write(DATA[:100])
    place.store.put(DATA)
    assert place.store.get(HASH, MOST) == DATA


def test_a_reader_in_a_directory_sees_all_of_an_entry_or_nothing(tmp_path: Path) -> None:
    """Writers put large entries while readers ask for them; partial files are not left."""
    datas = [bytes([number]) * (1 << 20) for number in range(8)]
    hashes = [hashlib.sha256(data).hexdigest() for data in datas]
    stop, spoiled, seen = threading.Event(), list[str](), set[str]()

    def read() -> None:
        store = open_artefacts(str(tmp_path))
        while not stop.is_set() or len(seen) < len(hashes):
            for sha256 in hashes:
                try:
                    store.get(sha256, MOST)
                    seen.add(sha256)
                except ArtefactLost as error:
                    if "spoiled" in str(error):
                        spoiled.append(sha256)
                        return

    reader = threading.Thread(target=read)
    reader.start()
    writers = [threading.Thread(target=_put_all, args=(tmp_path, datas)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    stop.set()
    reader.join()
    assert spoiled == [] and seen == set(hashes)
    files = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(files) == sorted(hashes), "a partial file was left"


def _put_all(root: Path, datas: list[bytes]) -> None:
    store = open_artefacts(str(root))
    for data in datas:
        store.put(data)


def test_a_directory_that_cannot_be_used_is_a_store_that_is_away(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no directory")
    with pytest.raises(StoreAway, match="cannot be used"):
        open_artefacts(str(file / "below"))
    store = open_artefacts(str(tmp_path / "artefacts"))
    (tmp_path / "artefacts" / HASH[:2]).write_text("a file where a folder should be")
    with pytest.raises(StoreAway, match="cannot be used"):
        store.put(DATA)
    with pytest.raises(StoreAway, match="cannot be used"):
        store.get(HASH, MOST)


def test_an_address_that_nobody_knows_is_refused_without_the_secret_in_it() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(UsageError) as raised:
        open_artefacts("nosuch://user:secret@host/folder")
    assert "nosuch://" in str(raised.value) and "secret" not in str(raised.value)
