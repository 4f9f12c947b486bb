"""Run by alembic: migrates over the connection it is handed, inside that connection's transaction."""

from __future__ import annotations

from alembic import context

from kernelproof.db.service_models import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
