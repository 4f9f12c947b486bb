"""The pages of `kernelproof serve` below the service's own addresses, only to be read.

The service's own guards look at the name that it is called by, and at passwords.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from kernelproof.errors import MachineError
from kernelproof.report.web import require
from kernelproof.service.middleware import LIVE
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from kernelproof.report.web.result_server import WebPages


def are_possible() -> bool:
    """Whether the packages that pages need are installed."""
    try:
        require()
    except MachineError:
        return False
    return True


@contextmanager
def live_pages(place: DatabasePlace) -> Iterator[WebPages]:
    """The pages of a database. Raises MachineError where what they need is not installed, StoreError."""
    require()
    from kernelproof.report.web.result_server import WebPages
    from kernelproof.report.web.site import ReconnectingStore

    with closing(ReconnectingStore(place)) as database:
        yield WebPages(database, None, LIVE)
