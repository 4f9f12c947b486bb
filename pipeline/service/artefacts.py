"""Artefacts: the build stage of a candidate, carried from the machine that built it to the one that judges.

An artefact is one entry of an artefact store: a line of JSON, and the shared libraries that it names. The
JSON is read by pydantic alone, and a library is loaded by the candidate's own sandboxed process, as always.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from pydantic import ValidationError

from kernelproof.backends import backend
from kernelproof.errors import KernelproofError
from kernelproof.hashing import sha256_json, sha256_text
from kernelproof.service.artefact_store import ENTRY_BYTES, ArtefactStore
from kernelproof.types import Build, BuildState, FrozenRecord, Problem, SandboxReport, VerifySettings
from kernelproof.verifier.build import Toolchain
from kernelproof.verifier.engine.build_stage import BuildStage
from kernelproof.verifier.engine.prebuild import Prebuilt

FORMAT = 2
"""Raise it when the meaning of a record changes: older ones are then built again."""
TIMED_OUT_S = 3600.0
"""Seconds for which a build that stopped at its limit is not tried again: a machine may have been busy."""


class NoArtefact(KernelproofError):
    """There is no artefact that this machine can use. The message says why."""


class Artefact(FrozenRecord):
    """The record: a `Prebuilt` without paths."""

    format: int = FORMAT
    key: str
    published: float
    """Unix time."""
    torch: tuple[str | None, ...]
    """The versions of torch, its CUDA and Python's binary interface that a library is for."""
    architecture: str
    """Of the GPU; it says nothing of builds for a CPU."""
    cpu: str
    """It matters to builds for the very machine."""
    builds: tuple[Build, ...]
    contents: dict[str, Build]
    """By the hash of a build's request."""
    libraries: tuple[int, ...]
    """The bytes of each library, in their order after the record."""
    sandbox: SandboxReport | None
    trouble: str
    raised: str

    @property
    def every_build(self) -> tuple[Build, ...]:
        """Those that count as the candidate's, and those that it may ask for."""
        return (*self.builds, *self.contents.values())

    def fits(self, here: Toolchain, name: str) -> bool:
        """Whether a machine can judge a candidate of this backend by it."""
        same = self.torch == _torch(here)
        if backend(name).on_gpu:
            same = same and self.architecture == here.architecture
        native = any("native" in command for build in self.every_build for command in build.commands)
        return same and (not native or self.cpu == here.cpu)


def build_key(source: str, problem: Problem, settings: VerifySettings, toolchain: Toolchain) -> str:
    """A hash of all that decides the build stage: equal work has equal keys."""
    limits = ("backend", "size", "build_seconds", "load_seconds", "memory_bytes", "unsafe")
    given = settings.model_dump(mode="json", include=set(limits))
    machine = [toolchain.identity, toolchain.architecture, toolchain.cpu]
    return sha256_json([FORMAT, sha256_text(source), problem.sha256, given, machine])


def is_published(key: str, store: ArtefactStore) -> bool:
    """Whether equal work has not to be built again. Raises StoreAway."""
    try:
        record, _ = _read(key, store)
    except NoArtefact:
        return False
    timed_out = any(build.state is BuildState.TIMEOUT for build in record.every_build)
    return not timed_out or time.time() < record.published + TIMED_OUT_S


def publish(prebuilt: Prebuilt, key: str, toolchain: Toolchain, store: ArtefactStore) -> bool:
    """Puts the result of a build stage into the store, unless it is too large or shows a failure of ours.

    Raises StoreAway, and NoArtefact where a library is no longer in the cache of builds.
    """
    libraries: dict[str, bytes] = {}
    for build in (*prebuilt.builds, *prebuilt.contents.values()):
        if build.state in (BuildState.INFRASTRUCTURE, BuildState.UNAVAILABLE):
            return False
        if build.state is BuildState.OK:
            libraries[str(build.library_sha256)] = _library(build)
    record = Artefact(
        key=key,
        published=time.time(),
        torch=_torch(toolchain),
        architecture=toolchain.architecture,
        cpu=toolchain.cpu,
        builds=tuple(map(_without_path, prebuilt.builds)),
        contents={content: _without_path(build) for content, build in prebuilt.contents.items()},
        libraries=tuple(map(len, libraries.values())),
        sandbox=prebuilt.sandbox,
        trouble=_readable(prebuilt.trouble),
        raised=_readable(prebuilt.raised),
    )
    entry = b"\n".join((record.model_dump_json().encode(), b"".join(libraries.values())))
    if len(entry) > ENTRY_BYTES:
        return False
    store.put(key, entry)
    return True


def fetch(key: str, name: str, stage: BuildStage, store: ArtefactStore) -> Prebuilt:
    """The build stage that was published, its libraries in this machine's cache. `name`: the backend.

    Raises NoArtefact where there is none for such a machine; StoreAway; MachineError.
    """
    record, libraries = _read(key, store)
    if not record.fits(stage.toolchain, name):
        raise NoArtefact("it was built for another torch, GPU or CPU than this machine's")

    def adopted(build: Build) -> Build:
        if build.state is not BuildState.OK:
            return build
        library = stage.adopt(build, libraries[str(build.library_sha256)]).library
        return build.model_copy(update={"library": library})

    contents = {content: adopted(build) for content, build in record.contents.items()}
    builds = tuple(map(adopted, record.builds))
    return Prebuilt(builds, record.sandbox, record.trouble, record.raised, contents)


def _read(key: str, store: ArtefactStore) -> tuple[Artefact, dict[str, bytes]]:
    """An artefact and its libraries. Raises NoArtefact, StoreAway."""
    line, _, rest = (store.get(key) or b"").partition(b"\n")
    try:
        record = Artefact.model_validate_json(line)
    except ValidationError:
        raise NoArtefact(f"the artefact {key} is not in the store, or damaged") from None
    libraries, start = dict[str, bytes](), 0
    for size in record.libraries:
        library = rest[start : start + size]
        libraries[hashlib.sha256(library).hexdigest()] = library
        start += size
    wanted = {build.library_sha256 for build in record.every_build if build.state is BuildState.OK}
    if (record.format, record.key) != (FORMAT, key) or wanted != libraries.keys():
        raise NoArtefact(f"the artefact {key} is not one of this version")
    return record, libraries


def _library(build: Build) -> bytes:
    try:
        data = Path(str(build.library)).read_bytes()
    except OSError:
        raise NoArtefact("a library was removed from the build cache") from None
    if hashlib.sha256(data).hexdigest() != build.library_sha256:
        raise NoArtefact("a library in the build cache is damaged")
    return data


def _torch(toolchain: Toolchain) -> tuple[str | None, ...]:
    return (toolchain.torch, toolchain.torch_git, toolchain.torch_cuda, toolchain.extension_suffix)


def _without_path(build: Build) -> Build:
    return build.model_copy(update={"library": None})


def _readable(text: str) -> str:
    """A text that JSON and UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()
