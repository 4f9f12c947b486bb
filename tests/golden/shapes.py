"""The shapes of what programs read: key paths of each JSON with their types, and columns of tables."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

import httpx2
from pyarrow import parquet

from kernelproof.db.store import open_store
from kernelproof.problems import open_suite
from kernelproof.service.app import make_app
from kernelproof.service.schemas import Reader
from kernelproof.service.state import Service, Watch
from kernelproof.types import VerifySettings
from tests.cli.program import Program

Shape = dict[str, str]
KEYED_BY_DATA = frozenset(
    {
        *("figures", "stage_seconds", "seeds", "sizes", "layers", "params", "sampling", "statuses", "states"),
        *("clocks_before", "clocks_after", "ordinary", "raw", "price", "places", "parameters", "config"),
    }
)
"""Keys whose value is a table that has names of data as its keys: what lies below is no promise of ours."""


def shape(values: Iterable[Any]) -> Shape:
    """Each key path of some JSON values, `a.b[].c`, with the types that were seen there."""
    seen: dict[str, set[str]] = {}
    for value in values:
        for path, kind in _paths("", value):
            seen.setdefault(path, set()).add(kind)
    return {path: " | ".join(sorted(kinds)) for path, kinds in sorted(seen.items())}


def _paths(path: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            yield path, "object"
            below = {} if path.rpartition(".")[2] in KEYED_BY_DATA else value
            for key, inner in below.items():
                yield from _paths(f"{path}.{key}".lstrip("."), inner)
        case list():
            yield path, "array"
            for inner in value:
                yield from _paths(f"{path}[]", inner)
        case bool():
            yield path, "boolean"
        case int() | float():
            yield path, "number"
        case None:
            yield path, "null"
        case _:
            yield path, "string"


def lines(text: str) -> list[Any]:
    """The JSON value on each line of an output, or the one that fills it."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def shown(program: Program) -> Shape:
    """`show --json`, over the first attempt of each kind of run and status."""
    kinds = {(attempt.run.kind, attempt.status): attempt.id for attempt in reversed(program.attempts())}
    return shape(json.loads(program.run("show", n, "--json").stdout) for n in sorted(kinds.values()))


CPP = ("--suite", "problems", "--backend", "cpp", "--json")
COMMANDS: dict[str, tuple[object, ...]] = {
    "service callers list": ("service", "callers", "list", "--json"),
    "db check": ("db", "check", "--json"),
    "service gpus": ("service", "gpus", "--json"),
    **{
        f"leaderboard --by {by}": ("leaderboard", "--by", by, "--policy", "any", "--json")
        for by in ("kernel", "problem", "run", "strategy", "template")
    },
    "leaderboard --claims": ("leaderboard", "--claims", "--policy", "any", "--json"),
    "leaderboard --compare": (
        *("leaderboard", "--compare", "first", "unfinished", "--by", "run", "--policy", "any", "--json"),
    ),
    "problems list": ("problems", "list", "--suite", "problems", "--json"),
    "problems show": ("problems", "show", "relu", "--suite", "problems", "--json"),
    "problems prompt": ("problems", "prompt", "relu", *CPP),
    "runs status": ("runs", "status", "--json"),
    "verify": ("verify", "prose.md", "--problem", "relu", *CPP),
    "verify of many": ("verify", "prose", "--problem", "relu", *CPP),
}
"""Commands that print JSON and judge nothing."""
TABLES: dict[str, tuple[object, ...]] = {
    **{
        f"leaderboard --by {by}": ("--by", by)
        for by in ("model", "problem", "kernel", "run", "template", "strategy")
    },
    "leaderboard --claims": ("--claims",),
    "leaderboard --compare": ("--compare", "first", "unfinished", "--by", "run"),
}


def printed(program: Program) -> dict[str, Shape]:
    """What commands print with `--json`."""
    (program.workspace / "prose").mkdir()
    for file in ("prose.md", "prose/one.md"):
        (program.workspace / file).write_text("no code")
    found = {name: lines(program.run(*words, code=None).stdout) for name, words in COMMANDS.items()}
    return {name: shape(values) for name, values in found.items()}


def csv_columns(program: Program) -> dict[str, list[str]]:
    """The columns of tables as CSV."""
    found = {}
    for name, words in TABLES.items():
        text = program.run("leaderboard", *words, "--policy", "any", "--csv").stdout
        found[name] = next(csv.reader(io.StringIO(text)))
    return found


def exports(program: Program) -> dict[str, Any]:
    """The contents of exports: key paths, the columns of Parquet, names of files."""
    place = program.workspace / "exported"
    chosen = {"kernelbench": ("--run", "first"), "pairs": ("--run", "first")}
    for form in ("jsonl", "pairs", "parquet", "kernelbench", "inspect"):
        program.run("export", form, "-o", place / form, "--policy", "any", *chosen.get(form, ()))
    schema = parquet.read_schema(place / "parquet")
    found: dict[str, Any] = {"parquet": {field.name: str(field.type) for field in schema}}
    for form in ("jsonl", "pairs"):
        found[form] = shape(lines((place / form).read_text()))
    for form in ("kernelbench", "inspect"):
        found[form] = sorted({path.suffix for path in (place / form).rglob("*") if path.is_file()})
    return found


def service(program: Program) -> dict[str, Any]:
    """Answers of the evaluation service, its routes with the fields of their bodies, and its metrics."""
    suite = open_suite(program.workspace / "problems")
    settings = VerifySettings(backend="cpp", size="full", measure=False)
    with open_store(program.workspace / "db" / "attempts.sqlite") as store:
        app = make_app(
            Service(store, Reader(suite, settings, False, threading.Lock()), Watch(store), 10_000),
            hosts=["localhost"],
            open_to_all=True,
        )

        async def answers() -> dict[str, Any]:
            way = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(transport=way, base_url="http://localhost") as client:
                return {name: await client.request(*words) for name, words in asked.items()}

        asked = {
            **{"GET " + path: ("GET", path) for path in ("/health", "/v1/queue", "/v1/workers", "/metrics")},
            **{f"evaluation {each}": ("GET", f"/v1/evaluations/{each}") for each in _evaluations(program)},
            "GET /v1/evaluations/unknown": ("GET", "/v1/evaluations/unknown"),
        }
        found = asyncio.run(answers())
        metrics = found.pop("GET /metrics").text
        kept = [found.pop(name).json() for name in list(found) if name.startswith("evaluation ")]
        return {
            "GET /v1/evaluations/ID": shape(kept),
            **{name: shape([_of_any_time(answer.json())]) for name, answer in found.items()},
            "metrics": sorted(
                {line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE")}
            ),
            "routes": _routes(app.openapi()),
        }


def _of_any_time(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with a rate, which is null where nothing ended in the last minutes."""
    return answer | ({"per_second": 0.5} if "per_second" in answer else {})


def _evaluations(program: Program) -> list[str]:
    with closing(sqlite3.connect(program.workspace / "db" / "attempts.sqlite")) as connection:
        return [name for (name,) in connection.execute("SELECT id FROM evaluations ORDER BY submitted")]


def _routes(document: dict[str, Any]) -> dict[str, list[str]]:
    """Method and path of each route to the fields of its body."""
    kinds = {
        name: sorted(kind.get("properties", {})) for name, kind in document["components"]["schemas"].items()
    }
    routes = {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    found = {}
    for name, operation in sorted(routes.items()):
        text = json.dumps(operation.get("requestBody", {}))
        found[name] = sorted(
            {field for kind, fields in kinds.items() if f'/{kind}"' in text for field in fields}
        )
    return found


PARTS: dict[str, Callable[[Program], Any]] = {
    "CSV": csv_columns,
    "exports": exports,
    "printed": printed,
    "service": service,
    "show": shown,
}
