"""The stored state of the evaluation service, for the commands of its operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernelproof.errors import NothingStored

if TYPE_CHECKING:
    from kernelproof.db.service import ServiceData
    from kernelproof.workspace import DatabasePlace


@contextmanager
def stored_service(place: DatabasePlace, *, only_read: bool) -> Iterator[ServiceData]:
    """The part of the service in the database at `place`. Raises NothingStored where it is not there yet."""
    from kernelproof.db.store import open_store

    try:
        store = open_store(place, create=False, only_read=only_read)
    except NothingStored as error:
        raise NothingStored(
            f"there is no database {place} yet; kernelproof serve-api makes it (or choose the right "
            "--workspace or --db)"
        ) from error
    with store:
        yield store.service
