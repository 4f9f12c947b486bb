"""A batch reviews candidates in many threads at once."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelproof import pysource

SOURCE = Path(pysource.__file__).read_text() * 3


@pytest.fixture
def interruptions() -> Iterator[None]:
    """Other threads run in the middle of everything that makes objects."""

    def give_way(_phase: str, _info: object) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(give_way)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(give_way)


def test_programs_are_parsed_side_by_side(interruptions: None) -> None:
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(pysource.parse, [SOURCE] * 32))
    assert not [tree for tree in trees if isinstance(tree, SyntaxError)]
