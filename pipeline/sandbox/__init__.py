"""Confinement for commands that nobody trusts: tiers, limits, kill. It knows nothing of kernels."""

from pipeline.sandbox.affinity import on_cores
from pipeline.sandbox.group import Group
from pipeline.sandbox.model import Confinement, Held, Job, Limits, Outcome, State, Tier
from pipeline.sandbox.paths import python_paths, read_result, remove_scratch
from pipeline.sandbox.probe import probe
from pipeline.sandbox.process import Process, run, start
from pipeline.sandbox.scratch import Scratch, sweep

__all__ = [
    "Confinement",
    "Group",
    "Held",
    "Job",
    "Limits",
    "Outcome",
    "Process",
    "Scratch",
    "State",
    "Tier",
    "on_cores",
    "probe",
    "python_paths",
    "read_result",
    "remove_scratch",
    "run",
    "start",
    "sweep",
]
