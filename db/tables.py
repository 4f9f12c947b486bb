"""All tables of the database: an import of this module registers each of them with `Base`."""

from __future__ import annotations

from kernelproof.db import audits, hash_chain, models, reported, retraction, service_tables, work
from kernelproof.db.base import Base
from kernelproof.db.scores import tables as scores

__all__ = ["Base", "all_tables"]

_MODULES = [
    module.__name__
    for module in (work, models, retraction, reported, audits, scores, hash_chain, service_tables)
]


def all_tables() -> list[type[Base]]:
    """Their classes, module by module, in the order in which each module defines them."""
    return sorted(Base.__subclasses__(), key=lambda table: _MODULES.index(table.__module__))
