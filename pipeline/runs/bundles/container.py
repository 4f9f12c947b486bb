"""The zip file of a bundle, opened as what a stranger sent: nothing is unpacked, and all work is bounded.

Refused are files that only look harmless: a bomb, names that lead out of the bundle, links, encrypted or
doubled members, bytes that no member owns. The standard library reads the format; what it would believe is
checked first.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_json
from kernelproof.regular_files import NotRegular, open_regular
from kernelproof.runs.bundles.signing import Signers, signer_of
from kernelproof.wording import counted

FORMAT = "kernelproof bundle"
VERSION = 1
"""Of the format. A reader refuses every other one."""
MANIFEST = "manifest.json"
SOURCES = ("problem.py", "candidate.py", "base.py")
RECORDS = (
    *("problem.json", "prompt.json", "response.json", "extraction.json", "run.json"),
    *("verdict.json", "settings.json", "environment.json", "seeds.json"),
    *("findings.json", "builds.json", "checks.json", "measurement.json"),
)
OPTIONAL = frozenset({"base.py", "prompt.json", "environment.json", "measurement.json"})
PARTS = ("settings", "environment", "seeds", "findings", "builds", "checks", "measurement")
"""Fields of a verification that are members of their own; `verdict.json` holds the others."""

MOST_FILE_BYTES = 256 << 20
MOST_BYTES = 512 << 20
"""Of all its members, uncompressed."""
MOST_MEMBER_BYTES = 16 << 20
MOST_ATTEMPTS = 1000
MOST_MEMBERS = 1 + MOST_ATTEMPTS * len(SOURCES + RECORDS)
MOST_DEPTH = 64
"""Of lists and tables within each other."""
MOST_VALUES = 500_000
"""Of a member: numbers, texts, lists and tables."""
_TOO_DEEP = f"its lists and tables lie more than {MOST_DEPTH} deep"

MEMBER = re.compile(
    rf"attempts/([1-9][0-9]{{0,17}})/({'|'.join(re.escape(name) for name in SOURCES + RECORDS)})"
)


class NoJson(ValueError):
    """Bytes that are not the JSON of a bundle; the message says why."""


class BadBundle(UsageError):
    """A file that is no bundle, or one that is not opened."""


def member(number: int, name: str) -> str:
    return f"attempts/{number}/{name}"


def encoded(value: Any) -> bytes:
    """A value as indented ASCII JSON, keys sorted. Infinities and NaN become strings, which floats accept."""
    text = json.dumps(_without_infinities(value), indent=1, sort_keys=True, allow_nan=False)
    return f"{text}\n".encode("ascii")


def decoded(data: bytes) -> Any:
    """The value of JSON that anybody may have written.

    Raises NoJson for what is no JSON in UTF-8, numbers that no float holds, tables that name a key twice, and
    lists deeper than `MOST_DEPTH` or longer than `MOST_VALUES`.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoJson(f"it is not UTF-8 (byte {error.start})") from None
    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_named_once
        )
    except NoJson:
        raise
    except json.JSONDecodeError as error:
        raise NoJson(f"it is not JSON (line {error.lineno}: {error.msg})") from None
    except RecursionError:
        raise NoJson(_TOO_DEEP) from None
    except ValueError:
        raise NoJson("it holds a number with thousands of digits") from None
    _hold_size(value)
    return value


def text_of(data: bytes) -> str:
    """A source's text. Lone surrogates, which a model may write, are kept. Raises NoJson for other bytes."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise NoJson(f"it is not UTF-8 (byte {error.start})") from None


def manifest_sha256(manifest: dict[str, Any]) -> str:
    """The hash over a manifest: over all of it but the hash itself."""
    return sha256_json({key: value for key, value in manifest.items() if key != "sha256"})


def _without_infinities(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): _without_infinities(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(item) for item in value]
    return value


def _hold_size(value: Any) -> None:
    """Raises NoJson for what lies too deep, since later steps are recursive, and for too many values."""
    level, depth, count = [value], 0, 1
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth, count = depth + 1, count + sum(map(len, level))
        if depth > MOST_DEPTH:
            raise NoJson(_TOO_DEEP)
        if count > MOST_VALUES:
            raise NoJson(f"it holds more than {MOST_VALUES:,} values")
        level = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]


def _no_constant(word: str) -> Any:
    raise NoJson(f"it holds {word}, which is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NoJson(f"it holds the number {text[:40]}, which is too large")
    return value


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NoJson(f"it names {twice[:40]!r} twice")
    return table


END = struct.Struct("<4s4H2LH")
"""The end of a zip file (APPNOTE 4.3.16): signature, two numbers of disks, two counts of members, the
directory's size and place, the length of a comment."""
END_SIGNATURE = b"PK\x05\x06"
LOCAL = struct.Struct("<4s5H3L2H")
"""The header before a member's data (APPNOTE 4.3.7)."""
DIRECTORY_ENTRY = 46
"""Bytes of an entry of the directory, without its name (APPNOTE 4.3.12)."""
LONGEST_NAME = 200
CHUNK = 1 << 16
ENCRYPTED, DESCRIPTOR = 0x1, 0x8
"""Flags of a member: encrypted; its sizes stand behind its data."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_./-]+")


class Container:
    """An open bundle's zip file. Use it as a context manager."""

    def __init__(self, path: Path, signers: Signers | None = None) -> None:
        """Raises BadBundle, with a line that says why, for whatever is no zip file as bundles are.

        With `signers` the signature is checked before anything is read: raises what `signer_of` raises.
        """
        self.path = path
        self._file = _opened(path)
        try:
            self._size = os.fstat(self._file.fileno()).st_size
            if self._size > MOST_FILE_BYTES:
                raise self.bad(f"it is larger than a bundle may be ({MOST_FILE_BYTES >> 20} MiB)")
            self.signer = signer_of(path, self._file, signers) if signers is not None else None
            """Whose signature it bears; None where nobody asked."""
            count, start = self._hold_end()
            self._archive = self._read_directory()
            self._members = self._held(count, start)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def sizes(self) -> dict[str, int]:
        return {name: info.file_size for name, info in self._members.items()}

    def read(self, name: str) -> bytes:
        """A member's bytes. Raises BadBundle where they are damaged, or more or fewer than it declares."""
        return b"".join(self.chunks(name))

    def chunks(self, name: str) -> Iterator[bytes]:
        """The same, 64 KiB at a time."""
        info, left = self._members[name], self._members[name].file_size
        try:
            with self._archive.open(info) as member:
                while chunk := member.read(CHUNK):
                    left -= len(chunk)
                    yield chunk
            if left:
                raise EOFError
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, struct.error):
            why = f"the data of {name} is damaged, or is not of the size that it declares"
            raise self.bad(why) from None
        except OSError as error:
            raise self.bad(f"it cannot be read: {error.strerror}") from None

    def bad(self, why: str) -> BadBundle:
        return BadBundle(f"{self.path} is not read as a bundle: {why}")

    def _hold_end(self) -> tuple[int, int]:
        """The number of members and where the directory begins, as the end of the file says.

        Without this, the standard library would read a directory of any size, and believe a file that
        something stands before or behind.
        """
        if self._size < END.size:
            raise self.bad("it is not a zip file")
        self._file.seek(self._size - END.size)
        signature, *disks, count, also, size, start, comment = END.unpack(self._file.read(END.size))
        if signature != END_SIGNATURE:
            raise self.bad("it is not a zip file, or was cut off, or something stands behind it")
        if count > MOST_MEMBERS:
            raise self.bad(f"it declares {count:,} members, more than a bundle may have ({MOST_MEMBERS:,})")
        if any(disks) or count != also or comment or start + size + END.size != self._size:
            raise self.bad("its directory is not where a bundle has it: it was cut, joined or added to")
        if size > count * (DIRECTORY_ENTRY + LONGEST_NAME):
            raise self.bad("its directory is larger than its members need")
        return int(count), int(start)

    def _read_directory(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OSError):
            raise self.bad("its directory is damaged") from None

    def _held(self, count: int, directory: int) -> dict[str, zipfile.ZipInfo]:
        """The members by name, each of them as bundles have them, side by side from the file's beginning."""
        found: dict[str, zipfile.ZipInfo] = {}
        place = total = 0
        listed = self._archive.infolist()
        if len(listed) != count:
            raise self.bad(f"it declares {counted(count, 'member')} and lists {len(listed)}")
        for info in listed:
            self._hold(info)
            if info.filename in found:
                raise self.bad(f"it has two members called {info.filename}")
            if info.header_offset != place:
                raise self.bad(f"bytes that no member owns stand before {info.filename}")
            place += LOCAL.size + len(info.filename) + info.compress_size
            total += info.file_size
            self._hold_local(info)
            found[info.filename] = info
        if place != directory:
            raise self.bad("bytes that no member owns stand before its directory")
        if total > MOST_BYTES:
            raise self.bad(
                f"it declares {total:,} bytes, more than a bundle may hold ({MOST_BYTES >> 20} MiB)"
            )
        return found

    def _hold(self, info: zipfile.ZipInfo) -> None:
        name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
        if info.orig_filename != name or not _PLAIN_NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            raise self.bad(f"the name of a member is none that a bundle has: {info.orig_filename!r:.60}")
        if name.startswith("/") or ".." in name.split("/"):
            raise self.bad(f"the name of a member leads out of the bundle: {name!r:.60}")
        if kind == stat.S_IFLNK:
            raise self.bad(f"{name} is a link")
        if info.is_dir() or kind not in (0, stat.S_IFREG):
            raise self.bad(f"{name} is no file")
        if info.file_size > MOST_MEMBER_BYTES:
            most = f"{MOST_MEMBER_BYTES >> 20} MiB"
            raise self.bad(f"{name} declares {info.file_size:,} bytes, more than a member may have ({most})")
        if info.flag_bits & ENCRYPTED:
            raise self.bad(f"{name} is encrypted")
        if info.flag_bits & DESCRIPTOR or info.extra or info.comment:
            raise self.bad(f"{name} is packed in a way that no bundle is")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self.bad(f"{name} is compressed by a method that no bundle uses")

    def _hold_local(self, info: zipfile.ZipInfo) -> None:
        """The header before a member's data has to agree with its entry in the directory."""
        self._file.seek(info.header_offset)
        header = self._file.read(LOCAL.size + len(info.filename))
        if len(header) == LOCAL.size + len(info.filename):
            _, _, flags, method, _, _, crc, packed, size, name_length, extra = LOCAL.unpack(
                header[: LOCAL.size]
            )
            said = (flags, method, crc, packed, size, name_length, extra)
            listed = (info.flag_bits, info.compress_type, info.CRC, info.compress_size, info.file_size)
            if said == (*listed, len(info.filename), 0) and header[LOCAL.size :] == info.filename.encode():
                return
        raise self.bad(f"what stands before {info.filename} is not what the directory says of it")


def _opened(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except (NotRegular, IsADirectoryError):
        raise BadBundle(f"{path} is no file; give the file that kernelproof bundle wrote") from None
    except OSError as error:
        raise BadBundle(f"{path} cannot be read: {error.strerror}") from None
