"""Run by alembic: migrates over the connection it is handed, inside that connection's transaction."""

from __future__ import annotations

from alembic import context

import kernelproof.db.models
import kernelproof.db.reported
import kernelproof.db.scores.tables
import kernelproof.db.work  # noqa: F401
from kernelproof.db.base import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata)
context.run_migrations()
