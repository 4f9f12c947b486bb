"""The limit of open files, which each connection of a process counts against."""

from __future__ import annotations

import resource
import sys


def allow_open_files(needed: int, raise_to: int = 0) -> int:
    """The number of files that this process may have open: `needed`, where the system allows it.

    A limit below `needed` is raised as far as that goes, up to the larger of `needed` and `raise_to`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = max(needed, raise_to)
        soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
