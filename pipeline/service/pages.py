"""The pages that say what this service is, and what its API takes and gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from kernelproof.report.web.rendering import fragment, rendered
from kernelproof.service.middleware import DOCS, HOME, LIVE, OPENAPI, PAGES
from kernelproof.service.state import TheCaller
from kernelproof.version import __version__

router = APIRouter(include_in_schema=False)

SUMMARY = "kernelproof verifies kernels: send a candidate, and get whether it is correct and how fast it is."
LINKS = {
    DOCS: "what can be sent, and what comes back",
    OPENAPI: "the same for programs",
    "/v1/queue": "evaluations by state",
    "/v1/workers": "workers and GPUs",
    "/metrics": "figures for Prometheus",
    "/health": "whether it works",
}
_LIVE = {LIVE: "stored results, as they come"}


@router.get(HOME)
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


@router.get(DOCS)
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
    policy = f"{page.policy}; frame-ancestors 'none'"
    return HTMLResponse(page.text, headers={"Content-Security-Policy": policy})


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
