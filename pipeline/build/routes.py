"""The routes to a library: with slim headers what does with them, and with all of torch's what does not.

A source whose errors with the slim headers are not surely its own is compiled again in full; the one beside
it is not, and neither is where all errors are own: then it is known how the build ends.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace

from pipeline.build.compile_log import first_error
from pipeline.build.compiling import Compiled, Compiler
from pipeline.build.complaints import complaints, failures
from pipeline.build.glue import Glue
from pipeline.build.ninja_file import (
    CPP,
    CPP_OBJECT,
    CUDA_OBJECT,
    FULL_TEXT,
    SLIM_TEXT,
    Plan,
    make_plan,
    make_preprocessing,
    own_lines,
)
from pipeline.build.own_errors import all_own
from pipeline.build.preprocessed import read_preprocessed
from pipeline.build.slim import FOLDER, Slim, slim_route
from pipeline.nouns.build import Build, BuildRequest, BuildState, Route

_INTERNALS = re.compile(rf"(?<![\w./-])(?:\./)?{FOLDER}/|-I{FOLDER}\b|kernelproof(?:_|::)|KERNELPROOF_")
"""What a log of the slim route might say that means nothing to who wrote the source."""


class Routes:
    """Compiles one request by the routes that fit it, within limits for all of them together."""

    def __init__(
        self, compiler: Compiler, glue: Glue, request: BuildRequest, seconds: float, memory_bytes: int
    ) -> None:
        self._compiler, self._glue, self._request = compiler, glue, request
        self._began, self._seconds, self._memory_bytes = time.monotonic(), seconds, memory_bytes
        self._cpu_s = 0.0

    def compile(self, key: str, full: Plan, *, slim: bool) -> tuple[Build, bytes | None]:
        """The build and its library. `full`: the plan of the full route, which alone is gone without `slim`.

        Raises LockTimeout, OSError or MachineError when this machine fails.
        """
        route, glue, fallback = self._slim_route() if slim else (None, None, "")
        while route is not None:
            plan = make_plan(self._request, self._compiler.toolchain, route)
            done = self._run(plan, glue if route.bindings else None)
            if done.state is not BuildState.ERROR:
                return self._build(done, key, plan, Route.SLIM, fallback), done.library
            done = replace(done, log=_as_in_full(done.log, plan, full))
            rest = self._rest(route, done)
            if rest == route:
                return self._build(done, key, plan, Route.SLIM, fallback), None
            fallback = fallback or first_error(done.log)
            route = rest
        done = self._run(full, None)
        return self._build(done, key, full, Route.FULL, fallback), done.library

    def _slim_route(self) -> tuple[Slim | None, bytes | None, str]:
        route = slim_route(self._request, self._compiler.toolchain)
        glue = self._glue.object() if route is not None and route.bindings else None
        if route is not None and glue is None:
            route = route.only(cuda=True, bindings=False)
        return route, glue, ""

    def _build(self, done: Compiled, key: str, plan: Plan, route: Route, fallback: str) -> Build:
        changes = {
            "route": route,
            "fallback": fallback,
            "duration_s": time.monotonic() - self._began,
            "cpu_s": self._cpu_s,
        }
        return done.build(key, self._request.name, plan).model_copy(update=changes)

    @property
    def _left_s(self) -> float:
        return max(1.0, self._seconds - (time.monotonic() - self._began))

    def _run(self, plan: Plan, glue: bytes | None) -> Compiled:
        done = self._compiler.compile(plan, glue, self._left_s, self._memory_bytes)
        self._cpu_s += done.cpu_s
        return done

    def _rest(self, route: Slim, done: Compiled) -> Slim | None:
        """What of the slim route to go on with after this error; all of it, when the error is final."""
        failed = failures(done.log)
        if not failed or not failed.keys() <= {CPP_OBJECT, CUDA_OBJECT} or _INTERNALS.search(done.log):
            return None
        return route.only(
            cuda=CUDA_OBJECT not in failed,
            bindings=CPP_OBJECT not in failed or self._is_own(route, failed[CPP_OBJECT]),
        )

    def _is_own(self, route: Slim, said: list[str]) -> bool:
        """Whether the errors that g++ named are the C++ source's own, for sure."""
        found = complaints(said, CPP) if route.bindings else None
        if not found:
            return False
        plan = make_preprocessing(self._request, self._compiler.toolchain, route)
        done, texts = self._compiler.preprocess(
            plan, (SLIM_TEXT, FULL_TEXT), self._left_s, self._memory_bytes
        )
        self._cpu_s += done.cpu_s
        # What the preprocessor itself refuses, with all headers: a missing file, `#error`.
        refused = failures(done.log).get(FULL_TEXT, [])
        if all(complaint.text in refused for complaint in found):
            return True
        lines = own_lines(self._request)
        slim, full = (read_preprocessed(text, CPP, lines) if text is not None else None for text in texts)
        if slim is None or full is None:
            return False
        return all_own(found, plan.files[CPP].split("\n"), slim, full)


def _as_in_full(log: str, ours: Plan, full: Plan) -> str:
    """A log with the commands that ninja names as they are in the full route."""
    for command, other in zip(ours.commands, full.commands, strict=True):
        log = log.replace(command, other)
    return log
