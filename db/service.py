"""The evaluation service's part of the database."""

from __future__ import annotations

from kernelproof.db.callers import Callers
from kernelproof.db.connection import Database
from kernelproof.db.evaluations import Evaluations
from kernelproof.db.gpus import Gpus
from kernelproof.db.takings import Takings
from kernelproof.db.workers import Workers


class ServiceData:
    """Queue, callers, workers and GPUs of the evaluation service."""

    def __init__(self, database: Database) -> None:
        self.evaluations = Evaluations(database)
        self.takings = Takings(database)
        self.callers = Callers(database)
        self.workers = Workers(database)
        self.gpus = Gpus(database)
