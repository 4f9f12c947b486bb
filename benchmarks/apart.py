"""Do two verifications agree that are hours apart? ``python -m benchmarks.apart``.

The recorded answers that are written to be correct are verified in one batch, by an engine of this run's own
with an empty cache. `--against` names the file of an earlier run: then both verifications of each candidate
are compared, by the rule of `benchmarks.pairs` and by the one of `kernelproof reproduce`, and the
exit code is 1 when two statuses differ. Prints a table, writes JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.candidates import Work, recorded
from benchmarks.measuring import environment
from benchmarks.pairs import Times, paired, shown, summary
from kernelproof import backends
from kernelproof.hashing import sha256_text
from kernelproof.jobs import Job, Judge
from kernelproof.jobs.judge import places
from kernelproof.problems import open_suite
from kernelproof.runs.sizes import choose_size
from kernelproof.types import Rigor, Status, Verification, VerifySettings
from kernelproof.verifier.devices.discovery import default_backend
from kernelproof.verifier.engine.engine import Engine

IN_FLIGHT = 6
"""Builds beside the candidate that is judged: few, so that --seconds-budget ends them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="candidates, at most")
    parser.add_argument("--backend", default=default_backend(), choices=backends.names())
    parser.add_argument("--rigor", default="standard", choices=list(map(str, Rigor)))
    parser.add_argument("--against", type=Path, help="the file of an earlier run")
    parser.add_argument("--seconds-budget", type=float, help="begin no candidate after so long")
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/apart.json"))
    options = parser.parse_args()
    earlier = read(options.against) if options.against else None
    work = written_right(options.backend)[: options.count]
    size = choose_size(None, options.backend, [each.problem for each in work])
    settings = VerifySettings(backend=options.backend, size=size, rigor=Rigor(options.rigor))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    found: list[Verification] = []
    result: dict[str, Any] = {"environment": environment()}
    for verification in verified(work, settings, options.seconds_budget):
        found.append(verification)
        kept = [one.model_dump(mode="json") for one in found]
        options.output.write_text(json.dumps(result | {"at": time.time(), "verifications": kept}) + "\n")
    print(f"{len(found)} of {len(work)} verified; written to {options.output}")
    if earlier is not None:
        at, before = earlier
        sys.exit(0 if agreed(work, before, found, time.time() - at) else 1)


def read(path: Path) -> tuple[float, list[Verification]]:
    """When an earlier run ended, and what it found."""
    kept = json.loads(path.read_text())
    return kept["at"], [Verification.model_validate(one) for one in kept["verifications"]]


def written_right(backend: str) -> list[Work]:
    """The recorded answers that their author meant to be correct and that have a kernel compiled."""
    suite = open_suite()
    right = [
        one for one in recorded(backend) if one.expected == Status.CORRECT and "load_inline" in one.source
    ]
    distinct = {one.source: Work(suite.find(one.problem), one.source, one.expected) for one in right}
    return list(distinct.values())


def verified(work: list[Work], settings: VerifySettings, seconds: float | None) -> Iterator[Verification]:
    """Each as it comes, as many as are begun in the time. Raises what `Engine.verify` raises."""
    began = time.monotonic()

    def one(each: Work) -> Verification | None:
        if seconds is not None and time.monotonic() - began > seconds:
            return None
        return Judge(engine).judge(Job.of_text(each.source, each.problem, settings)).verification

    with (
        tempfile.TemporaryDirectory(prefix="kernelproof-apart-") as folder,
        Engine(Path(folder), many=True) as engine,
        ThreadPoolExecutor(min(IN_FLIGHT, places())) as pool,
    ):
        for done in as_completed([pool.submit(one, each) for each in work]):
            verdict = done.result()
            if verdict is not None:
                times = Times.of(verdict.measurement)
                print(f"{verdict.problem_id}: {verdict.status} {times or verdict.reason}", flush=True)
                yield verdict


def agreed(work: list[Work], before: list[Verification], now: list[Verification], seconds: float) -> bool:
    """Prints both verifications of each candidate, and says whether all statuses are the same."""
    earlier = {one.candidate_sha256: one for one in before}
    authored = {(each.problem.id, sha256_text(each.source)): each for each in work}
    both = [
        paired(number, authored[one.problem_id, one.candidate_sha256], earlier[one.candidate_sha256], one)
        for number, one in enumerate(now)
        if one.candidate_sha256 in earlier
    ]
    print(shown(both, "before", "now"))
    print(f"{seconds / 60:.0f} minutes apart")
    print(summary(both))
    return all(pair.same_status for pair in both)


if __name__ == "__main__":
    main()
