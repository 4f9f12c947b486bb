"""Confinement for commands that nobody trusts: tiers, limits, kill. It knows nothing of kernels."""

from kernelproof.sandbox.affinity import on_cores
from kernelproof.sandbox.group import Group
from kernelproof.sandbox.model import Confinement, Held, Job, Limits, Outcome, State, Tier
from kernelproof.sandbox.paths import python_paths, read_result, remove_scratch
from kernelproof.sandbox.probe import probe
from kernelproof.sandbox.process import Process, run, start
from kernelproof.sandbox.scratch import Scratch, sweep

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
