"""The build stage: a candidate's extensions are built before a referee sees it.

So compilers run while a GPU is busy with another candidate, and a candidate that does not compile never gets
near one. It runs in a sandbox without a GPU, and its calls reach the builder, whose cache the referee uses
later. It runs with a stub of torch first (`stub_run`). Where that does not show all of its builds, and where
something does not compile that it may never ask for, it is imported with torch, and rehearsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelproof.backends import backend
from kernelproof.errors import SandboxError
from kernelproof.hashing import sha256_json, sha256_text
from kernelproof.types import Build, BuildRequest, BuildState, Problem, SandboxReport, VerifySettings
from kernelproof.verifier.build import KEY_FORMAT, Builder, BuildIndex
from kernelproof.verifier.engine.stub_run import MODEL, names_builds, stub_builds
from kernelproof.verifier.sandbox import Group
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone

REHEARSAL_SECONDS = 30.0
"""Most seconds for constructing and calling the model without a GPU, builds not counted."""


@dataclass(frozen=True)
class Prebuilt:
    """The result of the build stage."""

    builds: tuple[Build, ...]
    sandbox: SandboxReport | None
    trouble: str = ""
    """Why the import ended early, if it did; without a GPU that need not be the candidate's fault."""
    raised: str = ""
    """The message of what it raised then."""
    contents: Mapping[str, Build] = field(default_factory=dict)
    """The builds, by the requests' `content_sha256`."""
    first_calls: Build | None = None
    """The build that represents kernels which are compiled when they are first called."""
    refused: str = ""
    """Why such a kernel is not there, where its compiler refused it or took too long."""


def prebuild(
    builder: Builder,
    cache: Path,
    source: str,
    settings: VerifySettings,
    jobs: Group,
    problem: Problem,
    *,
    runs_here: bool = True,
) -> Prebuilt:
    """Makes the builds that `source` asks for when it runs. It does not run where the build index knows them
    and the cache holds them.

    `jobs`: the group of the sandbox in which it runs. `problem`: what it is for. `runs_here`: whether this
    machine has the device; if not, a source without builds is imported to see whether it loads.
    """
    shows = names_builds(source)
    if runs_here and not shows:
        return Prebuilt((), None)
    index, entry = BuildIndex(cache), _index_name(builder, source, problem, settings.size)
    held = builder.held(index.keys(entry))
    if held is not None:
        return Prebuilt(tuple(held.values()), None, contents=held)

    def build(request: BuildRequest) -> Build:
        return builder.build(request, seconds=settings.build_seconds)

    quick = stub_builds(build, builder.toolchain, source, settings, problem, jobs) if shows else None
    if quick is not None and (quick.builds or runs_here):
        if not quick.trouble:
            _note(index, entry, quick.contents)
        return Prebuilt(quick.builds, quick.sandbox, quick.trouble, quick.raised, quick.contents)
    contestant = Contestant(build, memory_bytes=settings.memory_bytes, unsafe=settings.unsafe, jobs=jobs)
    with contestant:
        report = contestant.sandbox
        try:
            trouble, raised = _import(contestant, source, settings, builder)
        except ContestantGone as error:
            log = f"Its process was {error.outcome.reason}."
            lost = Build(key="", state=BuildState.INFRASTRUCTURE, name="what it asks for", log=log)
            return Prebuilt((lost,), report)
        if not trouble:
            _rehearse(contestant, settings, problem)
    builds = tuple(contestant.builds)
    contents = dict(zip(contestant.contents, builds, strict=True))
    if not trouble and all(b.state is BuildState.OK for b in builds):
        _note(index, entry, contents)
    return Prebuilt(builds, report, trouble, raised, contents)


def _import(
    contestant: Contestant, source: str, settings: VerifySettings, builder: Builder
) -> tuple[str, str]:
    """Why it ended early, and the message of what it raised; empty where it did not."""
    greet(contestant, settings, builder)
    try:
        contestant.ask({"op": "load", "source": source, "seed": 0}, seconds=settings.load_seconds)
    except ContestantFailed as error:
        return error.traceback or str(error), error.message
    except ContestantGone as error:
        if error.is_ours:
            raise
        return str(error), ""
    return "", ""


def greet(contestant: Contestant, settings: VerifySettings, builder: Builder) -> None:
    """Waits for a process, and lets it pretend to have the device. Raises SandboxError, and ContestantGone
    where it was killed from outside."""
    plug = backend(settings.backend)
    first = plug.first_call.message(interpret=False) if plug.first_call is not None else None
    hello: dict[str, Any] = {"op": "hello", "device": "cpu", "threads": 1, "flush_bytes": 0}
    request = {"op": "pretend", "device": plug.pretended, "capability": builder.toolchain.capability}
    try:
        contestant.wait_ready()
        contestant.ask({**hello, "first_calls": first}, seconds=settings.load_seconds)
        contestant.ask(request, seconds=settings.load_seconds)
    except (ContestantFailed, ContestantGone) as error:
        if isinstance(error, ContestantGone) and error.is_ours:
            raise
        raise SandboxError(f"a sandboxed Python did not start: {error}") from None


def _rehearse(contestant: Contestant, settings: VerifySettings, problem: Problem) -> None:
    """Has the candidate construct and call its model, with tensors that have no memory. Extensions that it
    asks for only then are built now. The end of that call decides nothing, as there is no GPU."""
    sizes = problem.sizes.get(settings.size, {})
    message = {"op": "rehearse", "class": MODEL, "problem": problem.source, "sizes": sizes}
    with suppress(ContestantFailed, ContestantGone):
        contestant.ask(message, seconds=min(REHEARSAL_SECONDS, settings.load_seconds))


def _note(index: BuildIndex, entry: str, contents: Mapping[str, Build]) -> None:
    """Says in the index that these are the builds. Without an entry the source runs again."""
    with suppress(OSError):  # the disk is full, say
        index.set(entry, {content: build.key for content, build in contents.items()})


def _index_name(builder: Builder, source: str, problem: Problem, size: str) -> str:
    """The name, in the build index, of this source for this problem with this toolchain.

    An entry is only a hint that saves a run: the referee asks the builder again, which checks its cache.
    """
    toolchain = builder.toolchain.model_dump(mode="json")
    return sha256_json([KEY_FORMAT, sha256_text(source), problem.sha256, size, toolchain])
