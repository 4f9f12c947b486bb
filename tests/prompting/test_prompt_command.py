"""`kernelproof problems prompt` prints what a model would be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernelproof.cli.options import VerifyOptions
from kernelproof.cli.problems import problems_app
from kernelproof.problems import read_problem
from kernelproof.prompting import first_prompt

PROBLEM = '''"""Doubles."""
import torch

n = 8
SIZES = {"full": {"n": 64}, "small": {"n": 2}}


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.rand(n)]


def get_init_inputs():
    return []
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "double.py"
    path.write_text(PROBLEM)
    return path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(problems_app, ["prompt", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_system_and_user_text_are_printed_apart(file: Path) -> None:
    expected = first_prompt(read_problem(file), backend="cpp", size="small")
    output = run("double", "--suite", str(file), "--backend", "cpp", "--size", "small")
    system, user = output.split("===== user ")
    assert system.startswith(f"===== system (basic-v1, prompt {expected.sha256[:12]}) =====\n")
    assert expected.system in system and expected.user in user


def test_json_is_the_prompt_itself(file: Path) -> None:
    expected = first_prompt(read_problem(file), backend="cuda", size="full")
    output = run("double", "--suite", str(file), "--backend", "cuda", "--json")
    assert json.loads(output) == json.loads(expected.model_dump_json())


def test_left_out_backend_and_size_are_those_that_generate_chooses(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for gpus, backend, size in (((), "cpp", "small"), (("H200",), "cuda", "full")):
        monkeypatch.setattr("kernelproof.verifier.devices.discovery.gpus", lambda gpus=gpus: gpus)
        chosen = VerifyOptions().settings([read_problem(file)])
        assert (chosen.backend, chosen.size) == (backend, size)
        expected = first_prompt(read_problem(file), backend=backend, size=size)
        assert json.loads(run("double", "--suite", str(file), "--json"))["sha256"] == expected.sha256
