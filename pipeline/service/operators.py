"""The routes that people look at: what this is, the API's documentation, health, queue, workers, metrics.

Figures are read when asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST as TYPE
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kernelproof.choices import Role
from kernelproof.db.evaluations import State
from kernelproof.db.gpus import GpuState
from kernelproof.db.store import Store
from kernelproof.report.web.rendering import fragment, rendered
from kernelproof.service.middleware import DOCS, HEALTH, HOME, LIVE, OPENAPI, PAGES, STATE
from kernelproof.service.state import TheCaller, TheService
from kernelproof.version import VERIFIER, __version__

router = APIRouter()

SUMMARY = "kernelproof verifies kernels: send a candidate, and get whether it is correct and how fast it is."
LINKS = {
    DOCS: "routes, and what can be sent to each",
    OPENAPI: "the same for programs",
    "/v1/queue": "evaluations by state",
    "/v1/workers": "workers and GPUs",
    "/metrics": "figures for Prometheus",
    HEALTH: "whether it works",
}
_LIVE = {LIVE: "stored results, as they come"}


@router.get(HOME, include_in_schema=False)
def home(request: Request, _: TheCaller) -> Response:
    """What this is, with links: HTML for a browser, JSON for a program."""
    links = (_LIVE if request.app.state.shows_live else {}) | LINKS
    if "text/html" not in request.headers.get("accept", ""):
        about = {"service": "kernelproof", "version": __version__, "about": SUMMARY}
        return JSONResponse({**about, "links": links})
    facts = {
        "summary": SUMMARY,
        "links": links,
        "base_url": str(request.base_url).rstrip("/"),
        "open_to_all": request.app.state.open_to_all,
        "pages": PAGES,
    }
    return _page("kernelproof evaluation service", "service.html", facts)


@router.get(DOCS, include_in_schema=False)
def docs(request: Request, _: TheCaller) -> Response:
    """The API's documentation, from its OpenAPI description. Nothing is loaded from elsewhere."""
    openapi = request.app.openapi()
    operations = [
        {**operation, "method": method.upper(), "path": path, "bodies": _bodies(operation, openapi)}
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    ]
    types = openapi["components"]["schemas"]
    facts = {"operations": operations, "types": types, "type_name": _type_name}
    return _page("kernelproof API", "api.html", facts)


def _page(heading: str, template: str, facts: Mapping[str, object]) -> HTMLResponse:
    content: dict[str, object] = {
        "heading": heading,
        "links": [],
        "body": fragment(template, facts),
        "filters": None,
    }
    page = rendered({"content": content, "live": None}, scripts=(), served=False)
    return HTMLResponse(page.text, headers={"Content-Security-Policy": page.header_policy})


def _bodies(operation: Mapping[str, Any], openapi: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The schemas of which a request's body matches one."""
    content = operation.get("requestBody", {}).get("content", {})
    schemas = [each["schema"] for each in content.values()]
    alternatives = [one for schema in schemas for one in schema.get("anyOf", [schema])]
    known = openapi["components"]["schemas"]
    return [known[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in alternatives]


def _type_name(schema: Mapping[str, Any]) -> str:
    """A JSON schema in a few words: `string or null`, `list of Task`."""
    if "anyOf" in schema:
        return " or ".join(map(_type_name, schema["anyOf"]))
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if schema.get("type") == "array":
        return f"list of {_type_name(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


@router.get(HEALTH)
def health(request: Request, service: TheService) -> dict[str, Any]:
    """Whether the database answers, and whether a worker or judge is alive."""
    if getattr(request.state, STATE) is None:  # a stranger
        return {"status": "ok"}
    alive = sum(each.alive and each.role != Role.BUILD for each in service.store.service.workers.all())
    return {"status": "ok" if alive else "no worker", "workers": alive, "verifier": VERIFIER}


@router.get("/v1/queue")
def queue(service: TheService, _: TheCaller) -> dict[str, Any]:
    """Evaluations by state, and verdicts a second."""
    evaluations = service.store.service.evaluations
    counts = evaluations.counts()
    return {
        "states": {state: counts.get(state, 0) for state in STATES},
        "places": service.most,
        "per_second": evaluations.rate(),
        "late_verdicts": evaluations.late_verdicts(),
        "late_builds": evaluations.late_builds(),
    }


@router.get("/v1/workers")
def workers(service: TheService, _: TheCaller) -> dict[str, Any]:
    """Workers and their last sign of life, and the GPUs that judges have seen."""
    return {
        "workers": [worker.model_dump() for worker in service.store.service.workers.all()],
        "gpus": [gpu.model_dump() for gpu in service.store.service.gpus.all()],
    }


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}})
def prometheus(service: TheService, _: TheCaller) -> PlainTextResponse:
    """The same for Prometheus."""
    return PlainTextResponse(figures(service.store, service.watch.waiting), media_type=TYPE)


STATES: tuple[State, ...] = get_args(State)
GPU_STATES: tuple[GpuState, ...] = get_args(GpuState)


def figures(store: Store, waiting: int) -> str:
    """All figures. `waiting`: requests that wait for a result."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(store, waiting))
    return generate_latest(registry).decode()


class _Figures(Collector):
    def __init__(self, store: Store, waiting: int) -> None:
        self._store, self._waiting = store, waiting

    def collect(self) -> Iterator[Metric]:
        counts = self._store.service.evaluations.counts()
        states = GaugeMetricFamily("kernelproof_evaluations", "Evaluations by state.", labels=["state"])
        for state in STATES:
            states.add_metric([state], counts.get(state, 0))
        yield states
        late = self._store.service.evaluations.late_verdicts()
        yield CounterMetricFamily("kernelproof_late_verdicts", "Verdicts refused: the lease was lost.", late)
        late = self._store.service.evaluations.late_builds()
        yield CounterMetricFamily("kernelproof_late_builds", "Builds refused: the lease was lost.", late)
        workers = self._store.service.workers.all()
        alive = sum(worker.alive for worker in workers)
        yield GaugeMetricFamily("kernelproof_workers_alive", "Workers with a recent sign of life.", alive)
        gpus = GaugeMetricFamily("kernelproof_gpus", "GPUs of judges by state.", labels=["state"])
        states_of_gpus = [gpu.state for gpu in self._store.service.gpus.all()]
        for each in GPU_STATES:
            gpus.add_metric([each], states_of_gpus.count(each))
        yield gpus
        rate = self._store.service.evaluations.rate()
        yield GaugeMetricFamily("kernelproof_verdicts_per_second", "Of the last ten minutes.", rate or 0.0)
        yield GaugeMetricFamily("kernelproof_requests_waiting", "Requests that wait for one.", self._waiting)
