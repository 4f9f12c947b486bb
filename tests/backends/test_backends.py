"""A backend is an object in one module, and a package outside can add one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelproof.backends import backend, names, our_backends
from kernelproof.errors import UsageError
from kernelproof.types import VerifySettings
from tests.plugins import install

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", names())
def test_each_has_a_prompt_example_and_a_finding_of_its_own(name: str) -> None:
    example = (ROOT / "prompts" / "examples" / f"{name}.py").read_text()
    assert backend(name).holds_own_code(example)
    assert not backend(name).holds_own_code("import torch\n")
    assert VerifySettings(backend=name).backend == name


def test_an_unknown_one_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="no backend 'cdua'; there are: cuda, cpp"):
        backend("cdua")
    with pytest.raises(ValueError, match="there are: cuda, cpp"):
        VerifySettings(backend="cdua")


def test_the_preferred_ones_are_first() -> None:
    assert names()[:2] == ("cuda", "cpp")
    assert [each.on_gpu for each in our_backends()][:2] == [True, False]


OPENCL = """
from dataclasses import replace

from kernelproof.backends.cpp import BACKEND as CPP

BACKEND = replace(
    CPP, name="opencl", order=-1, own_code="a `__kernel`", holds_own_code=lambda text: "__kernel" in text
)
"""
LISTED = """
import json, sys
from kernelproof.backends import names
from kernelproof.verifier.devices.discovery import default_backend, device_for
from kernelproof.types import VerifySettings

known = [names(), VerifySettings(backend="opencl").backend, "opencl_backend" in sys.modules]
print(json.dumps([*known, device_for("opencl"), names(), default_backend() == "opencl"]))
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with the packages in `folder` installed."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT / 'src'}"}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "-c", "from kernelproof.cli.app import main; main()", *words)


def test_a_package_outside_adds_one(tmp_path: Path) -> None:
    """Into the options, the settings and the policy, from an entry point alone; it is imported when it is
    asked for, and never the default."""
    install(tmp_path, "opencl_backend", OPENCL, backends={"opencl": "opencl_backend:BACKEND"})
    done = run(tmp_path, "-c", LISTED)
    listed = [*(each.name for each in our_backends()), "opencl"]
    assert json.loads(done.stdout) == [listed, "opencl", False, "cpu", listed, False], done.stderr
    assert f"<auto|{'|'.join(listed)}>" in command(tmp_path, "verify", "--help").stdout


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise SystemExit(0)", "cannot be loaded from hopeless:BACKEND: SystemExit: 0"),
        ("BACKEND = 3", "(hopeless:BACKEND) is no Backend"),
        ("from kernelproof.backends.cpp import BACKEND", "calls itself 'cpp'; give both the same name"),
    ],
)
def test_a_broken_package_is_told_where_it_is_asked_for_and_nowhere_else(
    tmp_path: Path, source: str, says: str
) -> None:
    install(tmp_path, "hopeless", source, backends={"hopeless": "hopeless:BACKEND"})
    words = ("problems", "prompt", "level1/1", "--backend")
    assert command(tmp_path, "verify", "--help").returncode == 0
    assert command(tmp_path, *words, "cpp").returncode == 0
    done = command(tmp_path, *words, "hopeless")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.startswith("kernelproof: the backend 'hopeless' ") and says in done.stderr
