"""Shared by the build tests: one toolchain for the session, and builders."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelproof.types import BuildRequest
from kernelproof.verifier.build import Builder, Toolchain, learn_toolchain

RequestMaker = Callable[..., BuildRequest]


@pytest.fixture(scope="session")
def toolchain(cache: Path) -> Toolchain:
    return learn_toolchain(cache)


@pytest.fixture(scope="session")
def builder(cache: Path, toolchain: Toolchain) -> Builder:
    """A builder whose cache lasts the session."""
    return Builder(cache, toolchain=toolchain)


@pytest.fixture
def fresh_cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def fresh(fresh_cache: Path, toolchain: Toolchain) -> Builder:
    """A builder with an empty cache."""
    return Builder(fresh_cache, toolchain=toolchain)


@pytest.fixture(scope="session")
def plain() -> RequestMaker:
    """Makes requests that include no torch header: they compile in well under a second."""

    def make(source: str = 'extern "C" int answer() { return 42; }', **changes: object) -> BuildRequest:
        fields = {"name": "plain", "no_implicit_headers": True, "is_python_module": False}
        return BuildRequest.model_validate({**fields, "cpp_sources": (source,), **changes})

    return make


@pytest.fixture
def nvcc(toolchain: Toolchain) -> str:
    """The CUDA compiler; tests that use it are skipped where there is none."""
    if toolchain.nvcc is None or shutil.which(toolchain.nvcc) is None:
        pytest.skip("no nvcc on this machine")
    return toolchain.nvcc
