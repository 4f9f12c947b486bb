"""The application: routes, what stands before them, and how errors are told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from kernelproof.errors import StoreError
from kernelproof.service import evaluations, kernelgym, nemo_gym, openrlhf, operators
from kernelproof.service.guard import LIVE, REFUSALS, Bounded, Door, Named, Refused, away, refused, told
from kernelproof.service.state import Service, described
from kernelproof.version import __version__

if TYPE_CHECKING:
    from kernelproof.report.web.server import WebPages

THREADS = 8
"""Requests at which the process works at once. More would take turns on one core, and all would end late."""


def make_app(
    service: Service, *, hosts: list[str], open_to_all: bool, live: WebPages | None = None
) -> FastAPI:
    """The application. `hosts`: names by which it may be called; `*` for all.

    `open_to_all`: no token is asked for. `live`: the pages below LIVE, where there are any.
    """

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
            group.start_soon(service.watch.run)
            yield
            group.cancel_scope.cancel()

    app = FastAPI(title="kernelproof", version=__version__, lifespan=alive, docs_url=None, redoc_url=None)
    app.state.service = service
    # The last one stands before the others: who may not call sends no body.
    app.add_middleware(Bounded)
    app.add_middleware(Door, store=service.store, open_to_all=open_to_all)
    app.add_middleware(Named, names=hosts)
    app.add_exception_handler(Refused, refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(StoreError, _store)
    for part in (evaluations, operators, kernelgym, nemo_gym, openrlhf):
        app.include_router(part.router, responses=REFUSALS)
    if live is not None:
        app.mount(LIVE, live)
    plain = app.openapi
    app.openapi = lambda: described(plain())  # type: ignore[method-assign]  # FastAPI's own way to change it
    return app


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    wrong = (f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())
    return told(422, "invalid", "; ".join(wrong))


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return told(error.status_code, "http", str(error.detail), dict(error.headers or {}))


async def _store(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StoreError)
    return away(error)
