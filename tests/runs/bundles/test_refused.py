"""Files that only look like bundles are refused with a line, before much of them is read."""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kernelproof.runs.bundles.container import MANIFEST, MOST_BYTES, MOST_MEMBER_BYTES
from tests.runs.bundles import forging

TEN_GB = 10_000_000_000
MOST_MEMORY = 48 << 20
"""Bytes that a refusal may take."""


class Member(NamedTuple):
    """A member as a forger writes it. The fields that are not given are right."""

    name: bytes
    data: bytes = b"{}"
    size: int | None = None
    method: int = zipfile.ZIP_DEFLATED
    flags: int = 0
    attributes: int = 0o100644 << 16
    extra: bytes = b""
    local_name: bytes | None = None
    packed: bytes | None = None


def archive(*members: Member, count: int | None = None, comment: bytes = b"") -> bytes:
    """A zip file with these members, of which each byte is the forger's (APPNOTE 4.3)."""
    body, directory = b"", b""
    for each in members:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = each.packed if each.packed is not None else packer.compress(each.data) + packer.flush()
        size = len(each.data) if each.size is None else each.size
        facts = struct.pack(
            "<3H3L", each.method, 0, 0x21, zlib.crc32(each.data), len(packed), min(size, 0xFFFFFFFF)
        )
        local = each.local_name if each.local_name is not None else each.name
        directory += struct.pack("<4s4H", b"PK\x01\x02", 0x031E, 20, each.flags, each.method) + facts[2:]
        directory += struct.pack(
            "<5H2L", len(each.name), len(each.extra), 0, 0, 0, each.attributes, len(body)
        )
        directory += each.name + each.extra
        body += struct.pack("<4s2H", b"PK\x03\x04", 20, each.flags) + facts
        body += struct.pack("<2H", len(local), 0) + local + packed
    number = len(members) if count is None else count
    sizes = (len(directory), len(body), len(comment))
    return body + directory + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, number, number, *sizes) + comment


def _with(*members: Member) -> Callable[[], bytes]:
    return lambda: archive(Member(MANIFEST.encode()), *members)


def _sound() -> bytes:
    return forging.zipped(forging.members(forging.attempt()))


def _doubled() -> bytes:
    """Two entries of the directory that share one member's data, as the densest bombs do."""
    one = archive(Member(b"a.json"))
    start = one.index(b"PK\x01\x02")
    entry = one[start : one.index(b"PK\x05\x06")]
    other = entry.replace(b"a.json", b"b.json")
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2, 2, 2 * len(entry), start, 0)
    return one[:start] + entry + other + end


def _version(version: object) -> Callable[[], bytes]:
    def forge() -> bytes:
        members = forging.members(forging.attempt())
        return forging.zipped(forging.edited(members, MANIFEST, lambda value: value.update(version=version)))

    return forge


def _many() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for number in range(70_000):
            made.writestr(f"{number}", b"")
    return buffer.getvalue()


def _without_manifest() -> bytes:
    members = forging.members(forging.attempt())
    return forging.zipped({name: data for name, data in members.items() if name != MANIFEST})


ZEROS = b"\0" * (MOST_MEMBER_BYTES + 1)
HUGE = struct.pack("<2HQ", 1, 8, TEN_GB)
"""The extra field by which a zip file of 64 bits says a size."""
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a text": (lambda: b"speedup: 9\n" * 100, "it is not a zip file"),
    "nothing": (lambda: b"", "it is not a zip file"),
    "cut": (lambda: _sound()[:-40], "or was cut off"),
    "cut in two": (lambda: _sound()[: len(_sound()) // 2], "or was cut off"),
    "something behind it": (lambda: _sound() + b"more", "or something stands behind it"),
    "something before it": (lambda: b"#!/bin/sh\n" + _sound(), "it was cut, joined or added to"),
    "two bundles": (lambda: _sound() + _sound(), "it was cut, joined or added to"),
    "a comment": (lambda: archive(Member(b"a.json"), comment=b"hello"), "or something stands behind it"),
    "a bomb that says so": (_with(Member(b"b.json", ZEROS)), "b.json declares 16,777,217 bytes"),
    "many small bombs": (
        lambda: archive(
            *(Member(f"{n}.json".encode(), packed=b"", size=MOST_MEMBER_BYTES) for n in range(40))
        ),
        f"more than a bundle may hold ({MOST_BYTES >> 20} MiB)",
    ),
    "a bomb that denies it": (
        lambda: archive(Member(MANIFEST.encode(), ZEROS * 4, size=100)),
        "manifest.json is damaged, or is not of the size that it declares",
    ),
    "less than it says": (
        lambda: archive(Member(MANIFEST.encode(), b"{}", size=100)),
        "manifest.json is damaged, or is not of the size that it declares",
    ),
    "10 GB": (_with(Member(b"b.json", size=TEN_GB, extra=HUGE)), f"b.json declares {TEN_GB:,} bytes"),
    "70,000 members": (_many, "more than a bundle may have"),
    "more members than it says": (
        lambda: archive(Member(b"a.json"), Member(b"b.json"), count=1),
        "it declares 1 member and lists 2",
    ),
    "a directory of its own size": (
        lambda: archive(Member(b"a.json", extra=b"\1\0\xf0\0" + b"x" * 240)),
        "its directory is larger than its members need",
    ),
    "shared data": (_doubled, "bytes that no member owns stand before b.json"),
    "a damaged directory": (
        lambda: archive(Member(b"a.json")).replace(b"PK\x01\x02", b"PK\x01\x09"),
        "its directory is damaged",
    ),
    "a traversal": (_with(Member(b"../../.ssh/authorized_keys")), "leads out of the bundle: '../../.ssh"),
    "a traversal inside": (_with(Member(b"attempts/../../x")), "leads out of the bundle"),
    "an absolute path": (_with(Member(b"/etc/passwd")), "leads out of the bundle: '/etc/passwd'"),
    "a backslash": (_with(Member(b"..\\x")), "the name of a member is none that a bundle has"),
    "a NUL": (_with(Member(b"a.json\0.py")), "the name of a member is none that a bundle has"),
    "an escape": (_with(Member(b"\x1b[2Jx")), "the name of a member is none that a bundle has"),
    "a long name": (_with(Member(b"x" * 201)), "the name of a member is none that a bundle has"),
    "no name": (_with(Member(b"")), "the name of a member is none that a bundle has"),
    "a link": (_with(Member(b"a.json", b"/etc/passwd", attributes=0o120777 << 16)), "a.json is a link"),
    "a device": (_with(Member(b"a.json", attributes=0o020666 << 16)), "a.json is no file"),
    "a folder": (_with(Member(b"attempts/")), "attempts/ is no file"),
    "doubled": (_with(Member(b"a.json"), Member(b"a.json")), "it has two members called a.json"),
    "encrypted": (_with(Member(b"a.json", flags=1)), "a.json is encrypted"),
    "sizes behind the data": (_with(Member(b"a.json", flags=8)), "packed in a way that no bundle is"),
    "another method": (_with(Member(b"a.json", method=zipfile.ZIP_BZIP2)), "compressed by a method"),
    "two names": (_with(Member(b"a.json", local_name=b"b.json")), "is not what the directory says"),
    "no manifest": (_without_manifest, "it has no manifest.json"),
    "another zip file": (_with(), "manifest.json does not say that it is one"),
    "a manifest that is no JSON": (lambda: archive(Member(MANIFEST.encode(), b"{")), "it is not JSON"),
    "a manifest of NaN": (lambda: archive(Member(MANIFEST.encode(), b'{"x":NaN}')), "it holds NaN"),
    "a deep manifest": (
        lambda: archive(Member(MANIFEST.encode(), b"[" * 10**6)),
        "its lists and tables lie more than 64 deep",
    ),
    "a newer format": (_version(2), "is a bundle of format 2, and 1 is read here"),
    "a format that is a word": (_version("1"), "is a bundle of format '1'"),
    "a format that is true": (_version(True), "is a bundle of format True"),
}


@pytest.mark.few(14)
@pytest.mark.parametrize("made, words", REFUSED.values(), ids=REFUSED.keys())
def test_it_is_refused_in_a_line(made: Callable[[], bytes], words: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.bundle"
    path.write_bytes(made())
    tracemalloc.start()
    (line,) = forging.told(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert words in line and str(path) in line
    assert line.isprintable() and len(line) < 400
    assert most < MOST_MEMORY


def test_a_sparse_file_of_10_gb_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "large.bundle"
    with path.open("wb") as file:
        file.truncate(TEN_GB)
    assert forging.told(path) == [
        f"{path} is not read as a bundle: it is larger than a bundle may be (256 MiB)"
    ]


@pytest.mark.parametrize("what", ["folder", "pipe", "device", "nothing"])
def test_what_is_no_file_is_refused_at_once(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.bundle"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    (line,) = forging.told(path)
    assert (
        line == f"{path} cannot be read: No such file or directory"
        if what == "nothing"
        else "is no file" in line
    )


def test_every_byte_that_is_changed_is_found(tmp_path: Path) -> None:
    """Each thousandth byte of a bundle is turned over: it is refused, or the part is named."""
    path, sound = tmp_path / "x.bundle", _sound()
    for place in range(0, len(sound), max(1, len(sound) // 150)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])
        lines = forging.told(path)
        assert lines or place_says_nothing(sound, place), f"byte {place} was changed, and nothing said so"


def place_says_nothing(sound: bytes, place: int) -> bool:
    """Whether a byte is one of a member's time, version or attributes, in the zip file's own records."""
    path = io.BytesIO(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])
    with zipfile.ZipFile(path) as changed:
        return {n: changed.read(n) for n in changed.namelist()} == forging.unzipped(sound)
