"""The build stage: what a candidate wants built is built before a referee sees it.

So compilers run while a GPU is busy with another candidate, and a candidate that does not compile never gets
near one. Where the source shows what it will ask for, that is built as it stands (`foresight`). Else, and
where that does not compile, the candidate is imported in a sandbox without a GPU, and its `load_inline` calls
reach the builder, whose cache the referee uses later.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.build import KEY_FORMAT, Builder, Marks
from pipeline.errors import SandboxError
from pipeline.execution.foresight import foreseen
from pipeline.hashing import sha256_json, sha256_text
from pipeline.nouns import Build, BuildRequest, BuildState, SandboxReport, VerifySettings
from pipeline.referee.seats.host import Contestant, ContestantFailed, ContestantGone
from pipeline.sandbox import Group


@dataclass(frozen=True)
class Prebuilt:
    """What the build stage saw."""

    builds: tuple[Build, ...]
    sandbox: SandboxReport | None
    trouble: str = ""
    """Why the import ended early, if it did; without a GPU that need not be the candidate's fault."""


def prebuild(builder: Builder, cache: Path, source: str, settings: VerifySettings, jobs: Group) -> Prebuilt:
    """Builds what importing `source` asks for. A candidate whose builds are known, and still there, is not
    imported again.

    `jobs`: the group of the sandbox in which it is imported.
    """
    marks, mark = Marks(cache), _mark(builder, source)
    known = marks.keys(mark)
    if known is not None and builder.holds(known):
        return Prebuilt((), None)

    def build(request: BuildRequest) -> Build:
        return builder.build(request, seconds=settings.build_seconds)

    seen = foreseen(source)
    shown = tuple(map(build, seen.requests))
    if seen.complete and shown and all(each.state is BuildState.OK for each in shown):
        return Prebuilt(shown, None)
    contestant = Contestant(build, memory_bytes=settings.memory_bytes, unsafe=settings.unsafe, jobs=jobs)
    with contestant:
        report = contestant.sandbox
        trouble = _import(contestant, source, settings)
    builds = tuple(contestant.builds)
    if not trouble and all(b.state is BuildState.OK for b in builds):
        marks.set(mark, [build.key for build in builds])
    return Prebuilt(builds, report, trouble)


def _import(contestant: Contestant, source: str, settings: VerifySettings) -> str:
    hello = {"op": "hello", "device": "cpu", "threads": 1, "flush_bytes": 0}
    try:
        contestant.wait_ready()
        contestant.ask(hello, seconds=settings.load_seconds)
    except (ContestantFailed, ContestantGone) as error:
        raise SandboxError(f"a sandboxed Python did not start: {error}") from None
    try:
        contestant.ask({"op": "load", "source": source, "seed": 0}, seconds=settings.load_seconds)
    except ContestantFailed as error:
        return error.traceback or str(error)
    except ContestantGone as error:
        return str(error)
    return ""


def _mark(builder: Builder, source: str) -> str:
    """The name of the mark that says which builds this source asks for with this toolchain.

    Only a hint that saves an import: the referee asks the builder again, which checks its cache.
    """
    return sha256_json([KEY_FORMAT, sha256_text(source), builder.toolchain.model_dump(mode="json")])
