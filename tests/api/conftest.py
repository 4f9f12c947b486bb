"""Arguments of the verifiers in these tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli import material


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> dict[str, Any]:
    """Suite, cache and settings."""
    suite = material.problems(tmp_path_factory.mktemp("suite") / "problems")
    return {"suite": suite, "cache": cache, "backend": "cpp", "measure": False, "trials": 1}
