"""The build stage where kernels are compiled when they are first called: the compile-only turn.

The candidate is imported and called in a sandbox without a GPU, on tensors without memory. A driver that
launches nothing stands in for CUDA's, so its kernels are compiled for this machine's GPU while another
candidate is on it. The compiler's output is kept by the source's content, and handed to the process that is
judged. No other source ever gets it: a candidate that writes other things there harms only itself.
"""

from __future__ import annotations

import base64
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from kernelproof.backends import FirstCall, backend
from kernelproof.hashing import sha256_text
from kernelproof.types import Build, BuildRequest, BuildState, Problem, VerifySettings
from kernelproof.verifier.build import Builder
from kernelproof.verifier.build.compiler_output import refusal
from kernelproof.verifier.engine.prebuild import Prebuilt, greet
from kernelproof.verifier.engine.stub_run import MODEL
from kernelproof.verifier.sandbox import Group
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone

PACK_SECONDS = 60.0
MAX_LOG = 100_000
WITHOUT_GPU = "Without a GPU its first call ended early; what that call compiles besides is not known."


def compile_ahead(
    builder: Builder, source: str, settings: VerifySettings, jobs: Group, problem: Problem
) -> Prebuilt:
    """Compiles what the candidate's first call compiles; `first_calls` is the build that stands for it.

    Where the compiler refuses a kernel, `refused` says so. Other failures decide nothing, as there is no
    GPU: the candidate is then judged as it is.
    """
    first = backend(settings.backend).first_call
    assert first is not None
    key = builder.address(_material(first, source, settings, problem))
    known = builder.kept(key)
    if known is not None:
        return _prebuilt(known)
    turn = _Turn(builder, first, source, settings, problem, key)
    with Contestant(turn.build, memory_bytes=settings.memory_bytes, unsafe=settings.unsafe, jobs=jobs) as it:
        made, content = turn.take(it)
        report, builds, contents = it.sandbox, tuple(it.builds), tuple(it.contents)
    if content is not None or made.state is BuildState.ERROR:
        made = builder.keep(made, content)
    found = _prebuilt(made)
    return Prebuilt(
        builds,
        report,
        found.trouble,
        contents=dict(zip(contents, builds, strict=True)),
        first_calls=made,
        refused=found.refused,
    )


class _Turn:
    """One candidate's compile-only turn."""

    def __init__(
        self,
        builder: Builder,
        first: FirstCall,
        source: str,
        settings: VerifySettings,
        problem: Problem,
        key: str,
    ) -> None:
        self._builder, self._first, self._source = builder, first, source
        self._settings, self._problem, self._key = settings, problem, key

    def build(self, request: BuildRequest) -> Build:
        """Serves the extensions that the candidate wants besides."""
        return self._builder.build(request, seconds=self._settings.build_seconds)

    def take(self, contestant: Contestant) -> tuple[Build, bytes | None]:
        """The build that stands for what was compiled, and what the compiler left, if all of that is to be
        kept."""
        began, log = time.monotonic(), ""
        try:
            greet(contestant, self._settings, self._builder)
            began = time.monotonic()
            self._call(contestant)
        except ContestantFailed as error:
            if error.kind == "compile":
                said = f"{refusal(error.type, error.message)}\n{error.traceback}"
                return self._made(BuildState.ERROR, began, said), None
            # Without a GPU that need not be the candidate's fault. The kernels compiled by then are of use.
            log = f"{WITHOUT_GPU}\n{error.traceback}"
        except ContestantGone as error:
            if error.timed_out:
                took = time.monotonic() - began
                return self._made(BuildState.TIMEOUT, began, f"Stopped after {took:.0f} s."), None
            if error.is_ours:
                said = f"Its process was {error.outcome.reason}."
                return self._made(BuildState.INFRASTRUCTURE, began, said), None
            return self._made(BuildState.OK, began, f"{WITHOUT_GPU}\n{error}"), None
        content = None
        with suppress(ContestantFailed, ContestantGone, ValueError, TypeError):
            reply = contestant.ask({"op": "pack"}, seconds=PACK_SECONDS)
            content = base64.b64decode(reply["packed"], validate=True)
        return self._made(BuildState.OK, began, log), content

    def _call(self, contestant: Contestant) -> None:
        """Has the candidate loaded and called. Raises what `Contestant.ask` raises."""
        settings, problem = self._settings, self._problem
        load = {"op": "load", "source": self._source, "seed": 0}
        contestant.ask(load, seconds=settings.build_seconds)
        sizes = problem.sizes.get(settings.size, {})
        call: dict[str, Any] = {"op": "rehearse", "class": MODEL, "problem": problem.source, "sizes": sizes}
        contestant.ask(call, seconds=settings.build_seconds)

    def _made(self, state: BuildState, began: float, log: str) -> Build:
        return Build(
            key=self._key,
            state=state,
            name=f"{self._first.package} kernels",
            duration_s=round(time.monotonic() - began, 3),
            log=log[:MAX_LOG],
        )


def _prebuilt(build: Build) -> Prebuilt:
    """The result of the build stage by the build that represents kernels compiled at their first call."""
    refused = build.log.partition("\n")[0] if build.state.status is not None else ""
    return Prebuilt((), None, build.log, first_calls=build, refused=refused)


def _material(first: FirstCall, source: str, settings: VerifySettings, problem: Problem) -> dict[str, object]:
    """All that decides what is compiled, beside the toolchain."""
    try:
        installed = version(first.package)
    except PackageNotFoundError:
        installed = ""
    return {
        "source": sha256_text(source),
        "problem": problem.sha256,
        "sizes": problem.sizes.get(settings.size, {}),
        "text": sha256_text(first.text),
        "package": [first.package, installed],
    }
