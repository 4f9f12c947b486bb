"""Artefacts: the build stage of a candidate, carried from the machine that built it to the one that judges.

An artefact is a JSON record and the shared libraries that it names, each under its SHA-256. The record is
read by pydantic alone, and a library is loaded by the candidate's own sandboxed process, as always.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelproof.backends import backend
from kernelproof.compile import Toolchain
from kernelproof.engine.build_stage import BuildStage
from kernelproof.engine.prebuild import Prebuilt
from kernelproof.hashing import sha256_json, sha256_text
from kernelproof.service.artefact_store import ArtefactLost, ArtefactStore
from kernelproof.types import Build, BuildState, FrozenRecord, Problem, SandboxReport, VerifySettings

FORMAT = 1
"""Raise it when the meaning of a record changes: older ones are then built again."""
RECORD_BYTES = 16 << 20
LIBRARIES_BYTES = 1 << 30
"""Most bytes of the record, and of all libraries of an artefact together."""


class TooLarge(Exception):
    """The artefact is too large to be published."""


class Target(FrozenRecord):
    """The torch, Python and GPU that a build is for: others cannot load its libraries."""

    torch: tuple[str | None, ...]
    suffix: str
    architecture: str
    """Of a GPU; it says nothing of builds for a CPU."""
    cpu: str
    """Of a CPU; it matters to builds for the very machine."""

    @classmethod
    def of(cls, toolchain: Toolchain) -> Target:
        """This machine's."""
        torch = (toolchain.torch, toolchain.torch_git, toolchain.torch_cuda)
        suffix, architecture = toolchain.extension_suffix, toolchain.architecture
        return cls(torch=torch, suffix=suffix, architecture=architecture, cpu=toolchain.cpu)


class Artefact(FrozenRecord):
    """The record: a `Prebuilt` without paths."""

    format: int = FORMAT
    target: Target
    made: tuple[Build, ...]
    """Every build, once."""
    builds: tuple[int, ...]
    """Those that count as the candidate's, by their place in `made`."""
    contents: dict[str, int]
    """Hash of a build's request to the place of the build."""
    sandbox: SandboxReport | None
    trouble: str
    raised: str

    def fits(self, here: Target, name: str) -> bool:
        """Whether a machine can judge a candidate of this backend by it."""
        same = (self.target.torch, self.target.suffix) == (here.torch, here.suffix)
        if backend(name).on_gpu:
            same = same and self.target.architecture == here.architecture
        native = any("native" in command for build in self.made for command in build.commands)
        return same and (not native or self.target.cpu == here.cpu)


def build_key(source: str, problem: Problem, settings: VerifySettings, toolchain: Toolchain) -> str:
    """A hash of all that decides the build stage: equal work has equal keys."""
    limits = ("backend", "size", "build_seconds", "load_seconds", "memory_bytes", "unsafe")
    given = settings.model_dump(mode="json", include=set(limits))
    target = Target.of(toolchain).model_dump(mode="json")
    return sha256_json([FORMAT, sha256_text(source), problem.sha256, given, target, toolchain.identity])


def publish(prebuilt: Prebuilt, toolchain: Toolchain, store: ArtefactStore) -> str:
    """Puts libraries and record into the store, the record last; the record's SHA-256.

    Raises TooLarge, StoreAway, and ArtefactLost where a library is no longer in the cache.
    """
    made: dict[tuple[str, str], Build] = {}
    for build in (*prebuilt.builds, *prebuilt.contents.values()):
        made.setdefault((build.key, build.name), build)
    places = {key: place for place, key in enumerate(made)}
    left = LIBRARIES_BYTES
    for build in made.values():
        left -= _put_library(build, store, left)
    record = Artefact(
        target=Target.of(toolchain),
        made=tuple(build.model_copy(update={"library": None}) for build in made.values()),
        builds=tuple(places[build.key, build.name] for build in prebuilt.builds),
        contents={content: places[b.key, b.name] for content, b in prebuilt.contents.items()},
        sandbox=prebuilt.sandbox,
        trouble=_readable(prebuilt.trouble),
        raised=_readable(prebuilt.raised),
    )
    data = json.dumps(record.model_dump(mode="json"), separators=(",", ":")).encode()
    if len(data) > RECORD_BYTES:
        raise TooLarge
    return store.put(data)


def fetch(sha256: str, name: str, stage: BuildStage, store: ArtefactStore) -> Prebuilt | None:
    """The build stage that was published, its libraries in this machine's cache.

    None where it is for another kind of machine than this one: `name` is the candidate's backend. Raises
    ArtefactLost, StoreAway, MachineError.
    """
    try:
        record = Artefact.model_validate_json(store.get(sha256, RECORD_BYTES))
        if record.format != FORMAT:
            raise ArtefactLost(f"artefact {sha256} has format {record.format}, not {FORMAT}")
        if not record.fits(Target.of(stage.toolchain), name):
            return None
        made = [_adopted(build, stage, store) for build in record.made]
        builds = tuple(made[place] for place in record.builds)
        contents = {content: made[place] for content, place in record.contents.items()}
    except (ValidationError, IndexError):
        raise ArtefactLost(f"artefact {sha256} is no record of a build") from None
    return Prebuilt(builds, record.sandbox, record.trouble, record.raised, contents)


def libraries(record: bytes) -> frozenset[str]:
    """SHA-256 of the libraries that a record names; none where it is no record."""
    try:
        made = Artefact.model_validate_json(record).made
    except ValidationError:
        return frozenset()
    return frozenset(build.library_sha256 for build in made if build.library_sha256 is not None)


def _put_library(build: Build, store: ArtefactStore, most: int) -> int:
    """The size of a build's library, which is in the store now."""
    if build.state is not BuildState.OK:
        return 0
    try:
        data = Path(str(build.library)).read_bytes()
    except OSError:
        raise ArtefactLost("a library was removed from the build cache") from None
    if len(data) > most:
        raise TooLarge
    if hashlib.sha256(data).hexdigest() != build.library_sha256:
        raise ArtefactLost("a library in the build cache is damaged")
    store.put(data)
    return len(data)


def _adopted(build: Build, stage: BuildStage, store: ArtefactStore) -> Build:
    if build.state is not BuildState.OK:
        return build
    here = stage.builder.kept(build.key)
    if here is not None and here.library_sha256 == build.library_sha256:
        return _as_built(build, here.library)
    data = store.get(str(build.library_sha256), LIBRARIES_BYTES)
    return _as_built(build, stage.adopt(build, data).library)


def _as_built(build: Build, library: str | None) -> Build:
    """The builder's record, with this machine's path."""
    changes: dict[str, Any] = {"library": library}
    return build.model_copy(update=changes)


def _readable(text: str) -> str:
    """A text that JSON and UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()
