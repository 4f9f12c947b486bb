"""Chooses one of the service's benchmarks: ``python -m benchmarks.service --help``."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import ModuleType

import benchmarks.service
from benchmarks.service import kills, memory, overhead, paired, queue, scaling
from kernelproof import backends
from kernelproof.verifier.devices.discovery import default_backend


def main() -> None:
    """Measures what the arguments name."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.service", description=benchmarks.service.__doc__
    )
    which = parser.add_subparsers(dest="which", required=True)

    def one(name: str, module: ModuleType) -> argparse.ArgumentParser:
        found = which.add_parser(name, description=module.__doc__)
        found.add_argument("--backend", default=default_backend(), choices=backends.names())
        file = Path(f"generated/benchmarks/service-{name}.json")
        found.add_argument("--output", type=Path, default=file)
        return found

    for_overhead = one("overhead", overhead)
    for_overhead.add_argument("--in-flight", type=int, nargs="+", default=[1, 64, 512])
    for_overhead.add_argument("--count", type=int, default=1024, help="evaluations for each number in flight")
    for_overhead.add_argument(
        "--places", type=int, default=18, help="evaluations that the worker has at once"
    )
    for_overhead.add_argument(
        "--slots",
        type=int,
        default=16,
        help="calls that the engine has at once; the worker's other places wait",
    )
    for_overhead.add_argument(
        "--seconds", type=float, default=4.0, help="of the stand-in for an evaluation, on average"
    )
    for_overhead.add_argument("--real", action="store_true", help="the real engine in place of the stand-in")
    for_overhead.add_argument("--together", action="store_true", help="all callers begin at the same moment")
    for_paired = one("paired", paired)
    for_paired.add_argument("--rounds", type=int, default=4)
    for_paired.add_argument("--count", type=int, default=24, help="candidates of a round")
    for_scaling = one("scaling", scaling)
    for_scaling.add_argument("--judges", type=int, nargs="+", default=[1, 2], help="of each turn")
    for_scaling.add_argument("--count", type=int, default=24, help="candidates for each judge")
    for_scaling.add_argument("--cores", type=int, default=1, help="CPU cores for each judge")
    for_queue = one("queue", queue)
    for_queue.add_argument("--length", type=int, default=100_000)
    for_queue.add_argument("--seconds", type=float, default=20.0, help="for which a worker takes from it")
    for_memory = one("memory", memory)
    for_memory.add_argument("--in-flight", type=int, default=512)
    for_memory.add_argument("--count", type=int, default=4096)
    for_memory.add_argument("--silent", type=int, default=8, help="connections that never read")
    for_kills = which.add_parser("kills", description=kills.__doc__)
    for_kills.add_argument("--output", type=Path, default=Path("generated/benchmarks/service-kills.json"))
    for_kills.add_argument("--kills", type=int, default=1000)
    for_kills.add_argument("--seed", type=int, default=1, help="of the moments at which they come")
    _run(parser.parse_args())


def _run(options: argparse.Namespace) -> None:
    if options.which == "paired":
        paired.run(options.backend, options.rounds, options.count, options.output)
    elif options.which == "scaling":
        scaling.run(options.backend, options.judges, options.count, options.cores, options.output)
    elif options.which == "queue":
        queue.run(options.backend, options.length, options.seconds, options.output)
    elif options.which == "kills":
        kills.run(options.kills, options.seed, options.output)
    elif options.which == "memory":
        memory.run(options.backend, options.in_flight, options.count, options.silent, options.output)
    else:
        seconds = None if options.real else options.seconds
        more = options.places, options.slots, seconds, options.together
        loads = [overhead.Load(options.backend, options.count, number, *more) for number in options.in_flight]
        overhead.run(loads, options.output)


if __name__ == "__main__":
    main()
