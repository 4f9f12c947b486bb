"""A candidate's builds by a run with a stub of torch, in a sandbox: a tenth of a second instead of seconds.

What the run says is untrusted. It decides whether the candidate is run once more, with torch, and nothing
else: a candidate that lies gets its builds later, or a failure that is its own.
"""

from __future__ import annotations

import ast
import re
import site
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from kernelproof.backends import backend
from kernelproof.pysource import parse
from kernelproof.types import Build, BuildRequest, BuildState, Problem, SandboxReport, VerifySettings
from kernelproof.types.record import FrozenRecord
from kernelproof.verifier.build import Toolchain
from kernelproof.verifier.sandbox import Group
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone

MODEL = "ModelNew"
SECONDS = 10.0
"""Most seconds for the run, builds not counted."""
_LOADERS = frozenset({"load_inline", "load"})
_BUILDS = re.compile(
    r"load_inline|cpp_extension|setuptools|_compile_kernel|\b(?:exec|eval|__import__|import_module|runpy)\b"
)
_NOTICES = re.compile(r"\b(?:try|suppress|hasattr|getattr|__dict__)\b|\b(?:vars|dir)\(")
"""By these a source may notice that a stub has what torch has not: what it does then is not certain."""
Text = Annotated[str, Field(max_length=20_000)]


class StubRun(FrozenRecord):
    """What the runner says of its run."""

    stage: Literal["load", "construct", "call", "end"]
    """The stage that raised; `end` where none did."""
    called: Annotated[frozenset[int], Field(max_length=10_000)]
    """Lines of the source that called a loader."""
    guessed: bool
    """Whether the candidate wanted to know something that only torch knows."""
    unknown: bool
    """Whether it wanted a build that is not known without torch."""
    message: Text
    """Of what it raised."""
    traceback: Text

    def is_complete(self, source: str) -> bool:
        """Whether a run with torch would hardly ask for more. An error costs time only: a build that is
        missed is made when the candidate is judged."""
        if self.stage == "load" or self.unknown:
            return False
        return (self.stage == "end" and not self.guessed) or lines_of_loaders(source) <= self.called

    def ended_by(self, build: Build, source: str) -> bool:
        """Whether the failure of this build ended it, as it would with torch."""
        named = self.message.startswith(f"Error building extension '{build.name}'")
        certain = self.stage in ("load", "construct") and not self.guessed and not self.unknown
        return named and certain and _NOTICES.search(source) is None


class StubBuilds(FrozenRecord):
    """What was built in a run that showed enough."""

    builds: tuple[Build, ...]
    contents: dict[str, Build]
    """The builds, by the requests' `content_sha256`."""
    sandbox: SandboxReport
    trouble: str = ""
    """The traceback of the failed build that ended it, if one did."""
    raised: str = ""
    """The message of that."""


def names_builds(source: str) -> bool:
    """Whether a source names anything by which extensions are built."""
    return _BUILDS.search(source) is not None


def lines_of_loaders(source: str) -> set[int]:
    """Lines of a source that name a function which builds extensions."""
    tree = parse(source)
    return {
        node.lineno
        for node in (ast.walk(tree) if isinstance(tree, ast.Module) else ())
        if (isinstance(node, ast.Name) and node.id in _LOADERS and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Attribute) and node.attr in _LOADERS and not _reads_files(node.value))
    }


def _reads_files(module: ast.expr) -> bool:
    """Whether the `load` of this module reads a file, and builds nothing."""
    return isinstance(module, ast.Name) and module.id in ("torch", "json", "np")


def stub_builds(
    build: Callable[[BuildRequest], Build],
    toolchain: Toolchain,
    source: str,
    settings: VerifySettings,
    problem: Problem,
    jobs: Group,
) -> StubBuilds | None:
    """Has built what the candidate asks for where a stub stands in torch's place.

    None where that does not show all of its builds, or not what comes of one that failed.
    """
    message = {
        "source": source,
        "class": MODEL,
        "problem": problem.source,
        "sizes": problem.sizes.get(settings.size, {}),
        "device": "cuda" if backend(settings.backend).on_gpu else "cpu",
        "capability": toolchain.capability,
        "torch": toolchain.torch,
        "torch_cuda": toolchain.torch_cuda,
        # Its runner reads no `.pth` file, by which an environment may borrow the torch of another.
        "path": [*site.getsitepackages(), str(Path(toolchain.torch_root).parent)],
        "machine": ["/usr", sys.prefix, sys.base_prefix, toolchain.torch_root, str(toolchain.cuda_home)],
    }
    memory, unsafe = settings.memory_bytes, settings.unsafe
    with Contestant(build, memory_bytes=memory, unsafe=unsafe, jobs=jobs, runner="stub_runner") as contestant:
        try:
            contestant.wait_ready()
            run = StubRun.model_validate(contestant.ask(message, seconds=SECONDS))
        except (ContestantFailed, ContestantGone, ValidationError):
            return None
    builds = tuple(contestant.builds)
    failed = any(made.state is not BuildState.OK for made in builds)
    if not (run.ended_by(builds[-1], source) if failed else run.is_complete(source)):
        return None
    return StubBuilds(
        builds=builds,
        contents=dict(zip(contestant.contents, builds, strict=True)),
        sandbox=contestant.sandbox,
        trouble=run.traceback if failed else "",
        raised=run.message if failed else "",
    )
