"""Without the package `datasets` a data set is refused in one line, and all else works."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelproof.errors import MachineError, install_command
from tests.problems.importing.command import imports
from tests.problems.trees import checkout


def test_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / "theirs.parquet").touch()
    error = imports(tmp_path / "theirs.parquet", tmp_path / "mine").exception
    assert isinstance(error, MachineError)
    assert str(error).endswith(f"install it: {install_command('datasets')}")
    assert imports(checkout(tmp_path / "files"), tmp_path / "mine").exit_code == 0
