"""The corpus on a real GPU: full size, inline CUDA, streams, events and graphs. Run with `make test-gpu`.

`scripts/confusion.py --device cuda` judges the same members, on several GPUs if there are any.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.verifier.sandbox import Group
from tests.referee.conftest import holding_court
from tests.referee.corpus import Confusion, Member, build_ahead, members
from tests.referee.court import Court

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Court]:
    """A court in whose cache every extension is already built."""
    build_ahead(members("cuda"), cache, Group(), threads=max(1, len(os.sched_getaffinity(0)) // 2))
    with holding_court(tmp_path_factory, cache) as court:
        yield court


@pytest.mark.parametrize("member", members("cuda"), ids=lambda member: member.id)
def test_gets_what_it_deserves_on_a_gpu(member: Member, court: Court, confusion: Confusion) -> None:
    verdict = court.judge(member.request)
    why = confusion.add(member, verdict)
    assert why is None, f"{why}\n{verdict.details}"
    assert not court.left_over()
