"""The evaluation service: candidates come over HTTP, workers verify them, the queue is in the database.

The HTTP process and the workers are processes of the orchestrator: neither runs problem or candidate code.
"""
