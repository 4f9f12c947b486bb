"""Confinement for commands that nobody trusts: tiers, limits, kill. It knows nothing of kernels."""

from kernelproof.verifier.sandbox.affinity import on_cores
from kernelproof.verifier.sandbox.group import Group
from kernelproof.verifier.sandbox.model import Confinement, Held, Job, Limits, Outcome, State, Tier
from kernelproof.verifier.sandbox.paths import python_paths, read_result, remove_scratch
from kernelproof.verifier.sandbox.probe import probe
from kernelproof.verifier.sandbox.process import Process, run, start
from kernelproof.verifier.sandbox.scratch import Scratch, sweep

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
