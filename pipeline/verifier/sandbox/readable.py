"""Whether the user that root's jobs run as may read what a job is shown.

Example: root clones into `/root/kernelproof`, and `/root` has mode 0700. A job of root runs as user 60800 to
61055. In tier A bwrap makes the directories above a path anew, so only the path itself has to be open. In
tiers C1 and D the job walks through the real ones, so those have to be open too.
"""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import slots
from kernelproof.verifier.sandbox.model import Job, Tier

_READ, _ENTER = 0o4, 0o1


class ClosedToJobs(SandboxError):
    """A job of root may not read what it needs. The message names the command that opens it."""


def require_readable(job: Job, tier: Tier) -> None:
    """Raises `ClosedToJobs` when root's job in this tier could not read the paths that it is shown.

    Looks at the permissions for "others": a job's user owns none of these paths, and is in no group.
    """
    if not slots.needed(tier):
        return  # the job runs as the caller, who reads what the caller may read
    closed = [path for path in job.read_only if not _open_to_all(path)]
    ways = {} if tier is Tier.A else dict(_closed_ways((*job.read_only, job.scratch)))
    if not closed and not ways:
        return
    told = [f"may not enter {way}, where {path} lies" for way, path in ways.items()]
    more = f" and {len(closed) - 1} more" if len(closed) > 1 else ""
    told += [f"may not read {closed[0]}{more}"] if closed else []
    commands = [f"chmod o+x {_quoted(ways)}"] if ways else []
    commands += [f"chmod -R o+rX {_quoted(closed)}"] if closed else []
    raise ClosedToJobs(
        f"Root's jobs run as a user of their own, who {'; who '.join(told)}. "
        f"Run `{' && '.join(commands)}`, or choose a place that every user may read."
    )


def _open_to_all(path: Path) -> bool:
    mode = path.stat().st_mode
    needed = _READ | _ENTER if stat.S_ISDIR(mode) else _READ
    return mode & needed == needed


def _closed_ways(paths: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """Each directory above a path that others may not enter, with that path."""
    for path in reversed(list(paths)):  # of two paths below one directory, the first is named
        for way in path.parents:
            if not way.stat().st_mode & _ENTER:
                yield way, path


def _quoted(paths: Iterable[Path]) -> str:
    return " ".join(shlex.quote(str(path)) for path in paths)
