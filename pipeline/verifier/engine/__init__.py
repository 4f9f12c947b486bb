"""Schedules builds and referees on this machine: queue, cores, retries. No database, no keys, no torch."""
