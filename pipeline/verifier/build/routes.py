"""The routes to a library: with slim headers what does with them, and with all of torch's what does not.

A source that ends in an error with the slim headers is compiled again in full, unless no header can mend it;
the one beside it is not.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import replace

from kernelproof.types.build import Build, BuildRequest, BuildState, Route
from kernelproof.verifier.build.compile_log import failures, first_error, shorten
from kernelproof.verifier.build.compiling import Compiled, Compiler, NoGlue
from kernelproof.verifier.build.glue import Glue
from kernelproof.verifier.build.hopeless import hopeless
from kernelproof.verifier.build.ninja_file import CPP_OBJECT, CUDA_OBJECT, Plan, make_plan
from kernelproof.verifier.build.slim import Slim, slim_route

TRIES = 3
"""Compilers that are killed from outside start again until they were killed so often."""


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
        route = slim_route(self._request, self._compiler.toolchain) if slim else None
        glue = self._glue.begun() if route is not None and route.bindings else None
        fallback = ""
        while route is not None:
            plan = make_plan(self._request, self._compiler.toolchain, route)
            try:
                done = self._run(plan, glue if route.bindings else None)
            except NoGlue:
                route = route.only(cuda=True, bindings=False)
                continue
            if done.state is not BuildState.ERROR:
                return self._build(done, key, plan, Route.SLIM, fallback), done.library
            rest = _rest(route, done)
            if rest == route or hopeless(done.log, self._request, self._compiler.toolchain):
                # The source that failed had all headers, or no header would help.
                return self._build(done, key, plan, Route.SLIM, fallback), None
            fallback = fallback or first_error(done.log)
            route = rest
        done = self._run(full, None)
        return self._build(done, key, full, Route.FULL, fallback), done.library

    def _build(self, done: Compiled, key: str, plan: Plan, route: Route, fallback: str) -> Build:
        changes = {
            "route": route,
            "fallback": fallback,
            "duration_s": time.monotonic() - self._began,
            "cpu_s": self._cpu_s,
        }
        return done.build(key, self._request.name, plan).model_copy(update=changes)

    def _run(self, plan: Plan, glue: Future[bytes | None] | None) -> Compiled:
        left = max(1.0, self._seconds - (time.monotonic() - self._began))
        runs: list[Compiled] = []
        while not runs or (runs[-1].lost and len(runs) < TRIES):  # that took time which is not the source's
            runs.append(self._compiler.compile(plan, glue, left, self._memory_bytes))
            self._cpu_s += runs[-1].cpu_s
        done = runs[-1]
        if done.lost and not any(run.proven for run in runs):  # the source writes that: it does each time
            why = f"The compilers were killed {TRIES} times of {TRIES}, and this machine had memory left."
            return replace(done, state=BuildState.TIMEOUT, log=shorten(f"{why}\n{done.log}"))
        return done


def _rest(route: Slim, done: Compiled) -> Slim | None:
    """What of the slim route to go on with after this error; None where it was no source that failed."""
    failed = failures(done.log)
    if not failed or not failed <= {CPP_OBJECT, CUDA_OBJECT}:
        return None
    return route.only(cuda=CUDA_OBJECT not in failed, bindings=CPP_OBJECT not in failed)
