"""Which cores a thread of ours may use (sched_setaffinity(2)); threads and processes that it starts inherit
them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress


@contextmanager
def on_cores(cores: Sequence[int]) -> Iterator[None]:
    """This thread keeps to these cores meanwhile; none named: it goes where it may."""
    before = os.sched_getaffinity(0)
    with suppress(OSError):  # taken from us meanwhile
        os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
