"""One referee for all tests that need one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelproof.verifier.build import learn_toolchain
from kernelproof.verifier.build.build_cache import open_cache
from kernelproof.verifier.build.builder import Glue
from kernelproof.verifier.sandbox import Group
from tests.devices.conftest import place as place
from tests.devices.conftest import start as start
from tests.referee.court import Court


@contextmanager
def holding_court(factory: pytest.TempPathFactory, cache: Path) -> Iterator[Court]:
    """Judges requests in one referee process; everything it starts has its files below one directory."""
    scratch = factory.mktemp("scratch")
    scratch.chmod(0o755)
    # Else the first build makes it in the background, which looks like something left over.
    glue_made(cache)
    with Court(cache, scratch) as court:
        yield court


def glue_made(cache: Path) -> None:
    """Compiles what all C++ extensions are linked with, once for all processes of a run."""
    with contextlib.closing(Group(())) as jobs:
        assert Glue(learn_toolchain(cache), open_cache(cache), jobs, unsafe=False).object() is not None


@pytest.fixture(scope="session")
def court(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Court]:
    """A court that is held once for all tests."""
    with holding_court(tmp_path_factory, cache) as court:
        yield court
