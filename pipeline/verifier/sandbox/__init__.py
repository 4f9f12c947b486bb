"""Confinement for commands that nobody trusts: tiers, limits, kill. It knows nothing of kernels.

Begin with `process`, which starts a job, watches it and ends it; `model` has its types, and `probe` finds
the strongest tier of this machine. Tiers A and B are `bwrap`, tiers C1, C2 and D are `warden_tree` with the
process `warden`; `landlock` and `seccomp` say what the kernel refuses a job. `pausing` holds a job still,
and the process `sweeper` lets nothing outlive a killed harness.
"""

from kernelproof.verifier.sandbox.model import Confinement, Held, Job, Limits, Outcome, State, Tier
from kernelproof.verifier.sandbox.paths import Scratch, python_paths, read_result, remove_scratch, sweep
from kernelproof.verifier.sandbox.probe import probe
from kernelproof.verifier.sandbox.process import Group, Process, on_cores, run, start

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
