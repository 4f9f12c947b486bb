"""Daemons that are to be killed: cheap to start, some of them with a stand-in for the slow part of the work.

One process has the program imported, and forks for each daemon. A real daemon is the program as users have
it.
A stand-in differs by its engine alone: a judge answers with the recorded verification of a source that it
knows, after a moment, and a builder waits for a moment. Leases, queue, builds and artefacts are real in both.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from kernelproof.hashing import sha256_text
from kernelproof.types import Problem, Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine

PRELOADED = (
    "kernelproof.cli.app",
    "kernelproof.cli.service",
    "kernelproof.service.app",
    "kernelproof.service.serving",
    "sqlalchemy.dialects.sqlite",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.auto",
    "anyio._backends._asyncio",
    "alembic.migration",
    "tests.service.mortal",
)
LONGEST_S = 0.8
"""The longest moment that a stand-in takes for one evaluation."""
LEASE_S = 10.0
"""Leases of stand-ins: shorter than usual, so that one that is stopped soon loses its own."""


def context() -> multiprocessing.context.ForkServerContext:
    """The process that forks. Call it once."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(list(PRELOADED))
    return found


def start(
    forks: multiprocessing.context.ForkServerContext,
    words: Sequence[object],
    environment: Mapping[str, str],
    directory: Path,
    verdicts: Path | None,
) -> BaseProcess:
    """Starts the program with these words. `verdicts`: what a stand-in answers with; None: a real one."""
    given = [str(word) for word in words]
    process = forks.Process(target=_become, args=(given, dict(environment), directory, verdicts), daemon=True)
    process.start()
    return process


def record(sources: Sequence[str], problem: Problem, settings: VerifySettings, cache: Path, to: Path) -> None:
    """Verifies these sources, for stand-ins."""
    with Engine(cache) as engine:
        found = {
            sha256_text(source): engine.verify(source, problem, settings).model_dump(mode="json")
            for source in sources
        }
    to.write_text(json.dumps(found))


def _become(words: list[str], environment: dict[str, str], directory: Path, verdicts: Path | None) -> None:
    os.setsid()
    with (directory / "daemons.log").open("a") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]  # has children
    sys.argv = ["kernelproof", *words]
    if verdicts is not None:
        _stand_in(verdicts)
    from kernelproof.cli.app import main

    main()


def _stand_in(verdicts: Path) -> None:
    from kernelproof.service import serving, worker

    known = {key: Verification.model_validate(each) for key, each in json.loads(verdicts.read_text()).items()}

    class Recorded(Engine):
        def verify(
            self, source: str, problem: Problem, settings: VerifySettings, *more: Any, **named: Any
        ) -> Verification:
            found = known.get(sha256_text(source))
            if found is None:
                return super().verify(source, problem, settings, *more, **named)
            time.sleep(random.uniform(0, LONGEST_S))
            return found.model_copy(update={"settings": settings})

    class Slow(worker.BuildWorker):
        def do(self, taken: Any, stop: Any) -> bool | None:
            time.sleep(random.uniform(0, LONGEST_S))
            return super().do(taken, stop)

    vars(serving).update(
        Engine=Recorded, BuildWorker=Slow, Daemon=functools.partial(worker.Daemon, lease_s=LEASE_S)
    )
