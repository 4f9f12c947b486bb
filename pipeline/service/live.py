"""The pages of `kernelproof serve` below the service's own addresses, only to be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from kernelproof.errors import MachineError
from kernelproof.service.guard import LIVE
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from kernelproof.report.serving.events import Events
    from kernelproof.report.serving.guard import Guard


class LivePages:
    """The application of the pages. Their rules and headers are those of `kernelproof serve`."""

    def __init__(self, app: Guard, events: Events) -> None:
        self._app, self._events = app, events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it. The service's own guards looked at the name that it is called by."""
        await self._app(scope, receive, send)

    def end(self) -> None:
        """Ends the answers that go on as long as a page is open."""
        self._events.close()


def are_possible() -> bool:
    """Whether the packages that pages need are installed."""
    from kernelproof.report.serving import require

    try:
        require()
    except MachineError:
        return False
    return True


@contextmanager
def live_pages(database: DatabasePlace) -> Iterator[LivePages]:
    """The pages of a database. Raises MachineError where what they need is not installed, StoreError."""
    from kernelproof.report.serving import require

    require()
    from kernelproof.report.serving.app import application
    from kernelproof.report.serving.events import Events
    from kernelproof.report.serving.guard import Guard
    from kernelproof.report.serving.opened import Opened
    from kernelproof.report.serving.pages import Pages

    with closing(Opened(database)) as opened:
        events = Events(opened.state_or_away)
        yield LivePages(Guard(application(Pages(opened, LIVE), events), None), events)
