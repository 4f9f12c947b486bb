"""What a build costs, cold and cached, by the slim route and in full: ``python -m benchmarks.builds``.

The extensions are those of the recorded answers of one backend. Each is built in an empty cache by each
route, one after the other, and once more from the cache. Prints a table, writes JSON; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from benchmarks.measuring import environment
from kernelproof import backends
from kernelproof.extraction import extract
from kernelproof.problems import open_suite
from kernelproof.providers.body import response_from_body
from kernelproof.providers.recording import read_recording
from kernelproof.types import Build, BuildRequest, BuildState, VerifySettings
from kernelproof.verifier.build import Builder, Toolchain, learn_toolchain
from kernelproof.verifier.devices.discovery import default_backend
from kernelproof.verifier.engine.build_stage import prebuild
from kernelproof.verifier.sandbox import Group


@dataclass(frozen=True)
class Row:
    """One extension, by one route."""

    name: str
    asked: str
    """`slim` or `full`: which route was allowed."""
    state: str
    route: str
    fallback: str
    wall_s: float
    cpu_s: float
    cached_s: float
    """Wall seconds of asking for it again."""


class Listener:
    """Stands where the builder stands, and only writes down what a candidate asks for."""

    def __init__(self, toolchain: Toolchain) -> None:
        self.toolchain = toolchain
        self.requests: list[BuildRequest] = []

    def held(self, keys: object) -> None:
        return None

    def build(self, request: BuildRequest, *, seconds: float) -> Build:
        self.requests.append(request)
        return Build(key="", state=BuildState.UNAVAILABLE, name=request.name, log="only asked")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default=default_backend(), choices=backends.names())
    parser.add_argument("--limit", type=int, help="at most so many extensions")
    parser.add_argument("--routes", nargs="+", default=["slim", "full"], choices=("slim", "full"))
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/builds.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kernelproof-benchmark-") as folder:
        toolchain = learn_toolchain(Path(folder))
        requests = asked_for(options.backend, toolchain)[: options.limit]
        rows = [row for route in options.routes for row in measured(Path(folder), toolchain, requests, route)]
    show(rows)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    result = {"backend": options.backend, "rows": [asdict(row) for row in rows], "environment": environment()}
    options.output.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {options.output}")


def asked_for(backend: str, toolchain: Toolchain) -> list[BuildRequest]:
    """The distinct extensions that the recorded answers want built, in their order."""
    listener, jobs, suite = Listener(toolchain), Group(), open_suite()
    settings = VerifySettings(backend=backend)
    for record in read_recording(files("kernelproof.prompts") / "recorded" / f"{backend}.jsonl").values():
        candidate = extract(response_from_body(record.response)).candidate
        if candidate is not None and "load_inline" in candidate.source:
            problem = suite.find(record.problem)
            prebuild(listener, Path("/nonexistent"), candidate.source, settings, jobs, problem)  # type: ignore[arg-type]
    distinct = {request.model_dump_json(): request for request in listener.requests}
    return list(distinct.values())


def measured(folder: Path, toolchain: Toolchain, requests: list[BuildRequest], route: str) -> list[Row]:
    """Every extension built in an empty cache, the glue made before."""
    builder = Builder(folder / route, toolchain=toolchain, slim=route == "slim")
    if route == "slim":
        builder.build(
            BuildRequest(name="first", cpp_sources=("int f() { return 1; }",), functions={"f": "f"})
        )
    rows = []
    for request in requests:
        began = time.monotonic()
        build = builder.build(request)
        wall, began = time.monotonic() - began, time.monotonic()
        builder.build(request)
        cached = time.monotonic() - began
        row = Row(request.name, route, build.state, build.route, build.fallback, wall, build.cpu_s, cached)
        print(f"  {route} {row.name}: {row.state}, {row.wall_s:.1f} s, {row.cpu_s:.1f} CPU s", flush=True)
        rows.append(row)
    return rows


def show(rows: list[Row]) -> None:
    """By what was asked and what came: how many, wall and processor seconds."""
    print(
        "\nasked  state        route  builds  wall s: median   most  CPU s: median     sum  cached s: median"
    )
    for key in dict.fromkeys((row.asked, row.state, row.route) for row in rows):
        some = [row for row in rows if (row.asked, row.state, row.route) == key]
        wall, cpu = [row.wall_s for row in some], [row.cpu_s for row in some]
        cached = statistics.median(row.cached_s for row in some)
        figures = f"{statistics.median(wall):14.1f}  {max(wall):5.1f}  {statistics.median(cpu):13.1f}"
        print(
            f"{key[0]:5}  {key[1]:11}  {key[2]:5}  {len(some):6}  {figures}  {sum(cpu):6.1f}  {cached:16.3f}"
        )


if __name__ == "__main__":
    main()
