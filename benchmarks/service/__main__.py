"""Chooses one of the service's benchmarks: ``python -m benchmarks.service --help``."""

from __future__ import annotations

import argparse
from pathlib import Path

import benchmarks.service
from benchmarks.service import overhead
from kernelproof import backends
from kernelproof.devices.discovery import default_backend


def main() -> None:
    """Measures what the arguments name."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.service", description=benchmarks.service.__doc__
    )
    which = parser.add_subparsers(dest="which", required=True)
    one = which.add_parser("overhead", description=overhead.__doc__)
    one.add_argument("--backend", default=default_backend(), choices=backends.names())
    one.add_argument("--in-flight", type=int, nargs="+", default=[1, 64, 512])
    one.add_argument("--count", type=int, default=1024, help="evaluations for each number in flight")
    one.add_argument("--places", type=int, default=18, help="evaluations that the worker has at once")
    one.add_argument("--seconds", type=float, default=1.0, help="of the stand-in for each evaluation")
    one.add_argument("--real", action="store_true", help="the real engine in place of the stand-in")
    one.add_argument("--together", action="store_true", help="all callers begin at the same moment")
    one.add_argument("--output", type=Path, default=Path("generated/benchmarks/service-overhead.json"))
    options = parser.parse_args()
    loads = [
        overhead.Load(
            options.backend,
            options.count,
            in_flight,
            options.places,
            None if options.real else options.seconds,
            options.together,
        )
        for in_flight in options.in_flight
    ]
    overhead.run(loads, options.output)


if __name__ == "__main__":
    main()
