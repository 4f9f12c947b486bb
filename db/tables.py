"""All tables of the database: an import of this module registers each of them with `Base`."""

from __future__ import annotations

from kernelproof.db import models, service_models
from kernelproof.db.models import Base

__all__ = ["Base", "all_tables"]


def all_tables() -> list[type[Base]]:
    """Their classes, in the order of the schema's documentation: those of `models`, then the service's."""
    modules = [models.__name__, service_models.__name__]
    return sorted(Base.__subclasses__(), key=lambda table: modules.index(table.__module__))
