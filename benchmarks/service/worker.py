"""A worker of the service with an engine of the benchmark's choice, as a process of its own."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from benchmarks.service.engines import Noted, StandIn
from kernelproof.db.store import open_store
from kernelproof.engine.engine import Engine
from kernelproof.service.worker import Worker
from kernelproof.types import Verification


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("backend")
    parser.add_argument("places", type=int)
    parser.add_argument("notes", type=Path)
    parser.add_argument("--stand-in", type=Path, help="the verification that a stand-in answers with")
    parser.add_argument("--seconds", type=float, default=0.0, help="of the stand-in, for each candidate")
    options = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as stack:
        store = stack.enter_context(open_store(options.database))
        engine: Any
        if options.stand_in:
            verdict = Verification.model_validate_json(options.stand_in.read_text())
            engine = StandIn(verdict, options.seconds)
        else:
            engine = stack.enter_context(Engine(many=True))
        noted = cast(Engine, Noted(engine, options.notes))
        worker = Worker(store, noted, (options.backend,), options.places, stop=stop)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        worker.run()


if __name__ == "__main__":
    main()
