"""A job sees exactly the GPUs that it was given, confined as any other."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import Job, python_paths, run

pytestmark = pytest.mark.gpu

COUNT = """
import ctypes
cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
print(cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
"""


def count(scratch: Path, gpus: tuple[int, ...]) -> list[int]:
    """[cuInit's answer, cuDeviceGetCount's answer, GPUs]."""
    env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    outcome = run(Job((sys.executable, "-I", "-c", COUNT), scratch, python_paths(), gpus=gpus, env=env))
    assert outcome.state == "ok", outcome
    return [int(word) for word in outcome.stdout.split()]


@pytest.mark.parametrize("tier", ["strongest", "C1"])
def test_a_job_sees_its_gpu_and_no_other(
    tier: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tier != "strongest":
        if os.geteuid() != 0:
            pytest.skip("tier C1 needs root")
        monkeypatch.setenv("KERNELPROOF_SANDBOX", tier)
    scratch = tmp_path_factory.mktemp("scratch")
    for directory in (scratch.parent, scratch.parent.parent):  # C1: the job's user passes through
        directory.chmod(0o711)
    minor = min(int(path.name[6:]) for path in Path("/dev").glob("nvidia[0-9]*"))
    assert count(scratch, (minor,)) == [0, 0, 1]
    assert count(scratch, ())[0] != 0


def test_a_gpu_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="nvidia99"):
        run(Job(("true",), tmp_path, gpus=(99,)))
