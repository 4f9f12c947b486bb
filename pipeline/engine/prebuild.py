"""The build stage: a candidate's extensions are built before a referee sees it.

So compilers run while a GPU is busy with another candidate, and a candidate that does not compile never gets
near one. Where the source shows what it will ask for, that is built as it stands (`static_extraction`). Where
it does not show all of it, and where something does not compile that it may never ask for, the candidate is
imported in a sandbox without a GPU, and rehearsed; its calls reach the builder, whose cache the referee uses
later.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelproof.backends import backend
from kernelproof.compile import KEY_FORMAT, Builder, BuildIndex
from kernelproof.compile.static_extraction.builds import MODEL, StaticBuilds, init_arguments, static_builds
from kernelproof.errors import SandboxError
from kernelproof.hashing import sha256_json, sha256_text
from kernelproof.sandbox import Group
from kernelproof.types import Build, BuildRequest, BuildState, Problem, SandboxReport, VerifySettings
from kernelproof.workers.client import Contestant, ContestantFailed, ContestantGone

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
    problem: Problem | None = None,
    *,
    runs_here: bool = True,
    known: bool = True,
) -> Prebuilt:
    """Makes the builds that `source` asks for when it runs. It is not imported where the build index knows
    them and the cache holds them.

    `jobs`: the group of the sandbox in which it is imported. `problem`: what it is for. `runs_here`: whether
    this machine has the device; if not, it is imported to see whether it loads. `known`: whether the result
    may leave out builds that the cache holds.
    """
    index, entry = BuildIndex(cache), _index_name(builder, source)
    keys = index.keys(entry) if known else None
    if keys is not None and builder.holds(keys):
        return Prebuilt((), None)

    def build(request: BuildRequest) -> Build:
        return builder.build(request, seconds=settings.build_seconds)

    seen = _extracted(builder, source, settings, problem)
    shown: dict[str, Build] = {}
    for request in seen.requests:
        made = shown[request.content_sha256] = build(request)
        if request in seen.certain and made.state is not BuildState.OK:
            raised = f"Error building extension '{request.name}'"
            return Prebuilt(tuple(shown.values()), None, made.log, raised, shown)
    fine = all(made.state is BuildState.OK for made in shown.values())
    if seen.complete and fine and (shown or runs_here):
        return Prebuilt(tuple(shown.values()), None, contents=shown)
    contestant = Contestant(build, memory_bytes=settings.memory_bytes, unsafe=settings.unsafe, jobs=jobs)
    with contestant:
        report = contestant.sandbox
        try:
            trouble, raised = _import(contestant, source, settings, builder)
        except ContestantGone as error:
            log = f"Its process was {error.outcome.reason}."
            lost = Build(key="", state=BuildState.INFRASTRUCTURE, name="what it asks for", log=log)
            return Prebuilt((lost,), report, contents=shown)
        if not trouble and problem is not None:
            _rehearse(contestant, settings, problem)
    builds = tuple(contestant.builds)
    contents = {**shown, **dict(zip(contestant.contents, builds, strict=True))}
    if not trouble and all(b.state is BuildState.OK for b in builds):
        index.set(entry, [build.key for build in builds])
    return Prebuilt(builds, report, trouble, raised, contents)


def _extracted(
    builder: Builder, source: str, settings: VerifySettings, problem: Problem | None
) -> StaticBuilds:
    return static_builds(
        source,
        gpu=backend(settings.backend).on_gpu,
        capability=capability(builder),
        arguments=init_arguments(problem, settings.size) if problem is not None else None,
    )


def capability(builder: Builder) -> tuple[int, int]:
    """The compute capability that is built for."""
    major, minor = builder.toolchain.architecture.rstrip("abcdefghijklmnopqrstuvwxyz").split(".")
    return int(major), int(minor)


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
    first = plug.first_call.said(interpret=False) if plug.first_call is not None else None
    hello: dict[str, Any] = {"op": "hello", "device": "cpu", "threads": 1, "flush_bytes": 0}
    pretence = {"op": "pretend", "device": plug.pretended, "capability": capability(builder)}
    try:
        contestant.wait_ready()
        contestant.ask({**hello, "first_calls": first}, seconds=settings.load_seconds)
        contestant.ask(pretence, seconds=settings.load_seconds)
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


def _index_name(builder: Builder, source: str) -> str:
    """The name of this source with this toolchain in the build index.

    An entry is only a hint that saves an import: the referee asks the builder again, which checks its cache.
    """
    return sha256_json([KEY_FORMAT, sha256_text(source), builder.toolchain.model_dump(mode="json")])
