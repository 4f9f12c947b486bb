"""Run by alembic: migrates over the connection it is handed, inside that connection's transaction."""

from __future__ import annotations

from alembic import context

from kernelproof.db.tables import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata)
context.run_migrations()
