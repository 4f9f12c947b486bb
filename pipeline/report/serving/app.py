"""The addresses: the board, the list of attempts, a page for each attempt, progress, and events."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from kernelproof.bounds import ROW
from kernelproof.errors import StoreError, UsageError
from kernelproof.report.html.page import Page, rendered
from kernelproof.report.serving.asked import filters_asked
from kernelproof.report.serving.events import Events
from kernelproof.report.serving.guard import UNFRAMED
from kernelproof.report.serving.pages import Pages


def application(pages: Pages, events: Events) -> ASGIApp:
    """The application, without the guard that stands before it."""

    def board(request: Request) -> Response:
        filters = filters_asked(request.query_params.multi_items())
        return _answer(pages.board(filters))

    def attempts(request: Request) -> Response:
        asked = request.query_params.multi_items()
        before = next((value for name, value in asked if name == "before"), None)
        filters = filters_asked((name, value) for name, value in asked if name != "before")
        return _answer(pages.attempts(filters, None if before is None else _number(before)))

    def attempt(request: Request) -> Response:
        number = _number(request.path_params["number"])
        try:
            return _answer(pages.attempt(number))
        except UsageError:
            raise HTTPException(404, f"There is no attempt {number}.") from None

    def progress(request: Request) -> Response:
        return _answer(pages.progress())

    return Starlette(
        routes=[
            Route("/", _told(board)),
            Route("/attempts", _told(attempts)),
            Route("/attempts/{number}", _told(attempt)),
            Route("/progress", _told(progress)),
            Route("/events", events),
        ],
        exception_handlers={HTTPException: _refused},
    )


def _told(endpoint: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """The endpoint; what went wrong becomes a page that says so."""

    def answer(request: Request) -> Response:
        try:
            return endpoint(request)
        except UsageError as error:
            return _message(request, 400, "This cannot be asked", str(error))
        except StoreError as error:
            return _message(request, 503, "The database cannot be read", str(error))

    return answer


def _number(text: str) -> int:
    try:
        return int(ROW.number(text))
    except ValueError as error:
        raise HTTPException(404, f"The number of an attempt {error}.") from None


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = "There is no such page." if error.detail == "Not Found" else error.detail
    heading = "Not found" if error.status_code == 404 else "Refused"
    return _message(request, error.status_code, heading, words)


def _message(request: Request, status: int, heading: str, words: str) -> Response:
    lines = words.split("\n")
    facts = {"heading": heading, "lines": lines, "base": request.scope.get("root_path", "")}
    return _answer(rendered("message.html", facts, scripts=()), status)


def _answer(page: Page, status: int = 200) -> Response:
    policy = f"{page.policy}; {UNFRAMED}"
    return HTMLResponse(page.text.encode("utf-8"), status, {"content-security-policy": policy})
