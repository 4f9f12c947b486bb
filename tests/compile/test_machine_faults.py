"""Faults of the machine: named as such, with what to do, and never remembered as the candidate's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.errors import MachineError, UsageError
from kernelproof.types import BuildState
from kernelproof.verifier.build import Builder, Toolchain
from kernelproof.verifier.build.toolchain import gencode, target_architecture


@pytest.mark.parametrize(
    ("change", "request_change", "said"),
    [
        ({"nvcc": None}, {"cuda_sources": ("__global__ void k() {}",)}, "CUDA_HOME"),
        ({"nvcc": "/no/such/nvcc"}, {"with_cuda": True}, "No nvcc"),
        ({"cxx": None}, {}, "g++"),
        ({"ninja": "/no/such/ninja"}, {}, "pip install ninja"),
        ({"python_include": "/no/such/include"}, {}, "python3-dev"),
    ],
)
def test_a_missing_tool_is_named_with_how_to_get_it(
    fresh_cache: Path, toolchain: Toolchain, plain, change, request_change, said: str
) -> None:
    builder = Builder(fresh_cache, toolchain=toolchain.model_copy(update=change))
    request = plain(**request_change)
    build = builder.build(request)
    assert build.state is BuildState.UNAVAILABLE
    assert said in build.log
    assert builder.kept(builder.key(request)) is None


@pytest.mark.parametrize("header, state", [("curand.h", "unavailable"), ("curand_not_anywhere.h", "error")])
def test_a_header_of_no_toolkit_is_no_fault_of_the_machines(
    fresh_cache: Path, toolchain: Toolchain, plain, header: str, state: str
) -> None:
    lacking = toolchain.model_copy(update={"absent_headers": ("cublas_v2.h",)})
    request = plain(cpp_sources=(f"#include <{header}>\n",))
    assert Builder(fresh_cache, toolchain=lacking).build(request).state.value == state


def test_a_ninja_that_does_not_run_is_no_fault_of_the_candidates(
    fresh_cache: Path, tmp_path: Path, toolchain: Toolchain, plain
) -> None:
    """A binary whose first line had been rewritten was once kept as the build error of every candidate."""
    ninja = tmp_path / "ninja"
    ninja.write_text("#!/no/such/interpreter\n")
    ninja.chmod(0o755)
    builder = Builder(fresh_cache, toolchain=toolchain.model_copy(update={"ninja": str(ninja)}))
    build = builder.build(plain())
    assert build.state is BuildState.INFRASTRUCTURE
    assert "pip install --force-reinstall ninja" in build.log
    assert builder.kept(builder.key(plain())) is None


def test_what_was_unavailable_is_built_once_the_tool_is_there(
    fresh_cache: Path, toolchain: Toolchain, plain
) -> None:
    without = toolchain.model_copy(update={"cxx": None})
    assert Builder(fresh_cache, toolchain=without).build(plain()).state is BuildState.UNAVAILABLE
    assert Builder(fresh_cache, toolchain=toolchain).build(plain()).state is BuildState.OK


def test_a_cache_that_breaks_while_in_use_is_an_infrastructure_error(
    fresh: Builder, fresh_cache: Path, plain
) -> None:
    work = fresh_cache / "builds" / "partial"
    work.rmdir()
    work.write_text("")
    build = fresh.build(plain())
    assert build.state is BuildState.INFRASTRUCTURE
    assert str(work) in build.log


def test_a_cache_that_cannot_be_made_says_so(tmp_path: Path, toolchain: Toolchain) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="KERNELPROOF_CACHE"):
        Builder(tmp_path / "file", toolchain=toolchain)


def test_the_wished_architecture_is_taken_and_a_malformed_one_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KERNELPROOF_CUDA_ARCH", "10.0a")
    assert target_architecture() == "10.0a"
    monkeypatch.setenv("KERNELPROOF_CUDA_ARCH", "sm_90")
    with pytest.raises(UsageError, match=r"9\.0"):
        target_architecture()


def test_an_old_nvcc_embeds_ptx_for_a_newer_gpu() -> None:
    codes = ("sm_75", "sm_90", "sm_80")
    assert gencode("9.0", codes) == ("-gencode=arch=compute_90,code=sm_90",)
    assert gencode("9.0a", codes) == ("-gencode=arch=compute_90a,code=sm_90a",)
    assert gencode("12.0", codes) == ("-gencode=arch=compute_90,code=compute_90",)
    assert gencode("6.1", codes) == ()


def test_a_gpu_that_nvcc_has_dropped_makes_cuda_unavailable(toolchain: Toolchain, nvcc: str) -> None:
    old = toolchain.model_copy(update={"architecture": "3.5"})
    assert "KERNELPROOF_CUDA_ARCH" in (old.lacks(cuda=True) or "")
    assert old.lacks(cuda=False) is None
