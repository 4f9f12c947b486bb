"""What other programs read keeps its keys and types, as the documentation shows them."""

from __future__ import annotations

import pytest

from tests.cli.program import Program
from tests.golden import shapes
from tests.golden.loading import FIXED, load


@pytest.mark.parametrize("part", sorted(shapes.PARTS))
def test_it_has_the_shape_that_it_had(part: str, program: Program) -> None:
    assert shapes.PARTS[part](program) == load("shapes.json")[part], FIXED
