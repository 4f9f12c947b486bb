"""Starting a job in a given tier."""

from __future__ import annotations

import re

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import slots
from kernelproof.verifier.sandbox.bwrap import BwrapTree
from kernelproof.verifier.sandbox.model import Job, Tier
from kernelproof.verifier.sandbox.paths import prepare_scratch, require_readable
from kernelproof.verifier.sandbox.tree import Tree
from kernelproof.verifier.sandbox.warden_tree import WardenTree

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def launch(job: Job, tier: Tier) -> Tree:
    """Starts the job. Raises `SandboxError` with the tool's own words when it cannot be confined so.

    Raises `ClosedToJobs`, a `SandboxError`, when the job's user may not read what the job is shown.
    """
    _require_sound(job)
    require_readable(job, tier)
    slot = slots.take() if slots.needed(tier) else None
    try:
        prepare_scratch(job.scratch, slot.uid if slot else None)
        return BwrapTree(job, tier, slot) if tier in (Tier.A, Tier.B) else WardenTree(job, tier, slot)
    except BaseException:
        if slot:
            slot.release()
        raise


def _require_sound(job: Job) -> None:
    if not job.argv or "=" in job.argv[0]:
        raise SandboxError("A job needs a command, whose first word has no '='.")
    for name, value in job.env.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise SandboxError(f"{name!r} cannot be set as an environment variable.")
    for path in (job.scratch, *job.read_only):
        if not path.is_absolute() or not path.exists():
            raise SandboxError(f"The sandbox cannot show {path}: it has to be an existing absolute path.")
