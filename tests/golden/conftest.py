"""The program in a workspace with a copy of the golden database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import working_in
from tests.cli.program import Program
from tests.golden.loading import workspace


@pytest.fixture
def program(tmp_path: Path, cache: Path) -> Iterator[Program]:
    with working_in(workspace(tmp_path / "workspace"), cache) as program:
        yield program
