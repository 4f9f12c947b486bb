"""Attempts in the formats of other tools: docs/guide/export.md, docs/reference/export.md."""
