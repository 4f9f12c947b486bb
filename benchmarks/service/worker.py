"""`kernelproof service workers` with an engine of the benchmark's choice, as a process of its own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.service.engines import Noted, StandIn
from kernelproof.jobs.judge import places as usual_places
from kernelproof.service import serving
from kernelproof.types import Verification
from kernelproof.verifier.engine.engine import Engine
from kernelproof.workspace import Workspace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("places", type=int)
    parser.add_argument("notes", type=Path)
    parser.add_argument("--stand-in", type=Path, help="the verification that a stand-in answers with")
    parser.add_argument("--seconds", type=float, default=0.0, help="of the stand-in, for each candidate")
    parser.add_argument("--slots", type=int, help="calls that the engine has at once; as many as places")
    options = parser.parse_args()
    slots = options.slots or options.places or usual_places()

    def engine(**chosen: Any) -> Noted:
        if options.stand_in is None:
            return Noted(Engine(**chosen), options.notes, slots)
        verdict = Verification.model_validate_json(options.stand_in.read_text())
        return Noted(StandIn(verdict, options.seconds), options.notes, slots)

    vars(serving)["Engine"] = engine
    serving.work(Workspace(options.workspace), options.places, unsafe=False)


if __name__ == "__main__":
    main()
