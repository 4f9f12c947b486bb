"""Random order: `TEST_ORDER=7 make test-ci` shows tests that rely on others before or beside them.

Not by a package: so it works on machines without a network, and no seed of a test's own is drawn anew.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from pathlib import Path

import pytest


def shuffle(items: list[pytest.Item], seed: str) -> None:
    """Puts the files in an order that follows from `seed`, and the tests of each file.

    A file's tests stay together; pytest then sorts cases by the parameters of the fixtures that they share.
    Every process of a run has the same order, as pytest-xdist demands.
    """
    in_order = random.Random(seed)
    of_files: dict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        of_files[item.path].append(item)
    files = list(of_files.values())
    in_order.shuffle(files)
    for tests in files:
        in_order.shuffle(tests)
    items[:] = itertools.chain.from_iterable(files)
