"""An engine for each module: its processes are gone when the next one looks who uses the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.verifier.engine.engine import Engine


@pytest.fixture(scope="module")
def engine(cache: Path) -> Iterator[Engine]:
    with Engine(cache) as made:
        yield made
