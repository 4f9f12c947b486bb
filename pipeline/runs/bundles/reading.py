"""A bundle that somebody sent: held against its manifest, and its attempts as records."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Annotated, Literal, NamedTuple, Self, TypeVar

from pydantic import Field, ValidationError

from kernelproof.hashing import sha256_text
from kernelproof.runs.bundles.container import Container
from kernelproof.runs.bundles.contradictions import contradictions
from kernelproof.runs.bundles.layout import (
    FORMAT,
    MANIFEST,
    MEMBER,
    OPTIONAL,
    PARTS,
    RECORDS,
    SOURCES,
    VERSION,
    BadBundle,
    NoJson,
    decoded,
    manifest_sha256,
    member,
    text_of,
)
from kernelproof.runs.bundles.signing import Signers
from kernelproof.types import FrozenRecord
from kernelproof.types.explain import explain
from kernelproof.types.record import STORED
from kernelproof.types.reproduction import Bundled

MOST_EXPLAINED = 100
T = TypeVar("T")
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Listed(FrozenRecord):
    """A member, as the manifest has it."""

    bytes: int = Field(ge=0)
    sha256: Sha256


class Manifest(FrozenRecord):
    """The first member of a bundle."""

    format: Literal["kernelproof bundle"]
    version: int
    kernelproof: str = Field(max_length=200)
    """The version that wrote it."""
    policy: str = Field(max_length=200)
    """That version's policy."""
    members: dict[str, Listed]
    sha256: Sha256
    """Over all of the rest: the name of the bundle."""


class CheckedAttempt(NamedTuple):
    """One attempt of a bundle."""

    attempt: Bundled | None
    """None where its members make no record."""
    tampering: tuple[str, ...]
    """The signs that it was edited, a line for each."""


class Bundle:
    """An open bundle. Use it as a context manager."""

    def __init__(self, path: Path, signers: Signers | None = None) -> None:
        """Raises BadBundle for a file that is no bundle, or one that is not opened.

        With `signers`, also what `signer_of` raises, before anything in the file is read.
        """
        self.path = path
        self._container = Container(path, signers)
        try:
            self._manifest, own = self._read_manifest()
            self.tampering: tuple[str, ...] = (*own, *self._mismatches())
        except BaseException:
            self._container.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._container.__exit__(kind, error, trace)

    @property
    def sha256(self) -> str:
        """The hash that names the bundle: over its manifest, and so over every member."""
        return self._manifest.sha256

    @property
    def signer(self) -> str | None:
        """The name by which the signers list the key that signed it; None where no list was given."""
        return self._container.signer

    @property
    def numbers(self) -> list[int]:
        """The attempts that it holds, by the numbers that they had where it was made."""
        names = {*self._container.sizes, *self._manifest.members}
        return sorted({int(found[1]) for name in names if (found := MEMBER.fullmatch(name))})

    def checked_attempt(self, number: int) -> CheckedAttempt:
        """One attempt, with what in it cannot be true together."""
        try:
            attempt = self._record(number)
        except NoJson as error:
            return CheckedAttempt(None, (str(error),))
        return CheckedAttempt(attempt, tuple(f"attempt {number}: {line}" for line in contradictions(attempt)))

    def _read_manifest(self) -> tuple[Manifest, list[str]]:
        """The manifest, and what shows that it was edited."""
        if MANIFEST not in self._container.sizes:
            raise self._container.bad(f"it has no {MANIFEST}")
        try:
            value = decoded(self._container.read(MANIFEST))
        except NoJson as error:
            raise self._container.bad(f"{MANIFEST}: {error}") from None
        stated = value if isinstance(value, dict) else {}
        if stated.get("format") != FORMAT:
            raise self._container.bad(f"{MANIFEST} does not say that it is one")
        version = stated.get("version")
        if version != VERSION or isinstance(version, bool):
            raise BadBundle(
                f"{self.path} is a bundle of format {version!r:.40}, and {VERSION} is read here; a newer "
                "kernelproof may read it (pip install --upgrade kernelproof)"
            )
        try:
            manifest = Manifest.model_validate(value)
        except ValidationError as error:
            raise self._container.bad(f"{MANIFEST}: {_mistakes(error)}") from None
        edited = manifest_sha256(value) != manifest.sha256
        return manifest, [f"{MANIFEST} was edited: its SHA-256 is not the one it states"] if edited else []

    def _mismatches(self) -> list[str]:
        """Members that are not what the manifest says, or that no bundle has."""
        sizes, listed = self._container.sizes, self._manifest.members
        here = set(sizes) - {MANIFEST}
        said = [f"{name!r:.80} is missing" for name in sorted(set(listed) - here)]
        said += [f"{name} is there, and the manifest does not list it" for name in sorted(here - set(listed))]
        strange = [name for name in sorted(listed) if not MEMBER.fullmatch(name)]
        said += [f"{name!r:.80} is no member of a bundle" for name in strange]
        for name in sorted(here & set(listed)):
            if sizes[name] != listed[name].bytes:
                said.append(f"{name} has {sizes[name]} bytes, and the manifest says {listed[name].bytes}")
            elif self._hash(name) != listed[name].sha256:
                said.append(f"{name} was edited: its SHA-256 is not the one in the manifest")
        for number in self.numbers:
            needed = (member(number, name) for name in SOURCES + RECORDS if name not in OPTIONAL)
            lacking = [name for name in needed if name not in here and name not in listed]
            said += [f"{name} is missing, and the manifest does not list it" for name in lacking]
        return said or ([] if self.numbers else ["it holds no attempt"])

    def _hash(self, name: str) -> str:
        digest = hashlib.sha256()
        for chunk in self._container.chunks(name):
            digest.update(chunk)
        return digest.hexdigest()

    def _record(self, number: int) -> Bundled:
        """The attempt's members as one record. Raises NoJson, with the member's name, for what makes none."""
        parts = {name.removesuffix(".json"): self._member(number, name, decoded) for name in RECORDS}
        sources = {name: self._member(number, name, text_of) for name in SOURCES}
        tables = {name: part for name, part in parts.items() if isinstance(part, dict)}
        source = sources["candidate.py"]
        run = tables.get("run", {})
        value = {
            "number": number,
            "run": run.get("settings"),
            "sample": run.get("sample"),
            "turn": run.get("turn"),
            "problem": {**tables.get("problem", {}), "source": sources["problem.py"]},
            "prompt": parts["prompt"],
            "response": parts["response"],
            "base": sources["base.py"],
            "extraction": {
                **tables.get("extraction", {}),
                "candidate": None if source is None else {"source": source, "sha256": sha256_text(source)},
            },
            "verification": {**tables.get("verdict", {}), **{name: parts[name] for name in PARTS}},
        }
        try:
            return Bundled.model_validate(value, context=STORED)
        except ValidationError as error:
            raise NoJson(f"attempt {number} is none that kernelproof writes: {_mistakes(error)}") from None

    def _member(self, number: int, name: str, read: Callable[[bytes], T]) -> T | None:
        """One member as `read` has it; None where it is missing."""
        found = member(number, name)
        if found not in self._container.sizes:
            return None
        try:
            return read(self._container.read(found))
        except NoJson as error:
            raise NoJson(f"{found}: {error}") from None


def _mistakes(error: ValidationError) -> str:
    """The mistakes in a record, in a line; of very many only how many."""
    count = error.error_count()
    return explain(error) if count <= MOST_EXPLAINED else f"{count:,} of its values are none that it may have"
