"""Runs: batches, conversations, files of candidates, reproductions. Holds keys and database; no torch."""
