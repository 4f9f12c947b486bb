"""The blocks of docs/guide/recipes.md, each run by bash as it stands on the page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import fenced
from tests.cli.program import ROOT, Program
from tests.cli.test_compare import SLOW
from tests.providers.server import Step, completion, serve

pytestmark = [pytest.mark.ci, pytest.mark.timeout(900)]
PAGE = (ROOT / "docs" / "guide" / "recipes.md").read_text()


def block(heading: str, language: str) -> str:
    """The one block of a section of the page."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (found,) = re.findall(rf"^```{language}\n(.+?)^```$", section, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture
def shell(program: Program, tmp_path: Path) -> Program:
    """The program as a command of the shell, on a machine without a GPU."""
    command = tmp_path / "bin" / "kernelproof"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m kernelproof "$@"\n')
    command.chmod(0o755)
    program.extra = {"PATH": f"{command.parent}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": ""}
    return program


def run(shell: Program, script: str, code: int = 0) -> str:
    """What a script writes in the workspace, stopped at the first command that fails, as GitHub stops it."""
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=shell.workspace,
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def commit(folder: Path) -> None:
    """Commits all that is in a folder, which becomes a repository."""
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "a change")):
        subprocess.run(["git", *words], cwd=folder, check=True)


def test_a_model_on_a_server_of_yours(shell: Program) -> None:
    """Only the server's address differs: the test's has a port of its own."""
    script = block("A model on a server of yours", "bash")
    assert script.count(" http://localhost:8000/v1 ") == 1
    with serve(Step(completion(fenced(material.right())))) as server:
        said = run(shell, script.replace("http://localhost:8000/v1", server.url))
    assert [request["model"] for request in server.requests] == ["MODEL"]
    assert [attempt.status for attempt in shell.attempts()] == [Status.CORRECT]
    assert "openai:MODEL" in said and "\n1 problem against PyTorch: 1 " in said


def test_kernelbench(shell: Program, tmp_path: Path) -> None:
    """Its repository is an imitation: git is told to clone that in its place."""
    checkout = tmp_path / "imitation"
    (checkout / "KernelBench" / "level1").mkdir(parents=True)
    (checkout / "KernelBench" / "level1" / "19_ReLU.py").write_text(material.RELU)
    commit(checkout)
    replaced = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.file://{checkout}.insteadOf"}
    address = "https://github.com/ScalingIntelligence/KernelBench"
    shell.extra = {**shell.extra, **replaced, "GIT_CONFIG_VALUE_0": address}
    (shell.workspace / "mine.py").write_text(material.right())
    left = shell.workspace / "runs" / "mine"
    left.mkdir(parents=True)
    (left / "level_1_problem_19_sample_0_kernel.py").write_text(material.wrong())
    claim = {"sample_id": 0, "compiled": True, "correctness": True, "runtime": 0.5, "ref_runtime": 1.0}
    (left / "eval_results.json").write_text(json.dumps({"19": [claim]}))
    said = run(shell, block("KernelBench", "bash"))
    assert [attempt.status for attempt in shell.attempts()] == [Status.CORRECT, Status.WRONG_OUTPUT]
    assert "Claimed correct 1: judged correct 0, judged otherwise 1." in said


@pytest.mark.clock  # beside other programs a kernel may be three times slower than itself
@pytest.mark.parametrize(("today", "code"), [(material.right("k"), 0), (material.candidate("slow", SLOW), 1)])
def test_a_gate_against_slower_kernels(shell: Program, today: str, code: int) -> None:
    kernel, problem = shell.workspace / "kernels" / "relu.py", shell.workspace / "problems" / "relu.py"
    for folder in (kernel.parent, problem.parent):
        folder.mkdir()
    problem.write_text(material.RELU)
    for source in (material.right(), today):
        kernel.write_text(source)
        commit(shell.workspace)
    (job,) = yaml.safe_load(block("A gate against slower kernels", "yaml"))["jobs"].values()
    steps: list[dict[str, Any]] = job["steps"]
    *first, last = [step["run"] for step in steps if "run" in step]
    for script in first:
        run(shell, script)
    said = run(shell, last, code)
    assert ("surely slower" in said) is bool(code)
    assert [attempt.status for attempt in shell.attempts()] == [Status.CORRECT] * 2
