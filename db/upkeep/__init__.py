"""Looking after a database: check, backup, vacuum, upgrade."""
