"""The worked examples compile and give the reference's results."""

from __future__ import annotations

import importlib.util
from importlib.resources import as_file, files
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def load(name: str) -> ModuleType:
    with as_file(files("kernelproof.prompts").joinpath("examples", f"{name}.py")) as path:
        spec = importlib.util.spec_from_file_location(f"worked_example_{name}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def compare(backend: str, device: str) -> None:
    import torch

    reference, answer = load("model"), load(backend)
    drawn = [tensor.to(device) for tensor in reference.get_inputs()]
    strided = [torch.randn(7, 5, device=device).t(), torch.randn(5, 7, device=device)]
    empty = [torch.empty(0, 3, device=device)] * 2
    for inputs in (drawn, strided, empty):
        expected: Any = reference.Model()(*inputs)
        assert torch.equal(answer.ModelNew()(*inputs), expected)


@pytest.fixture(autouse=True)
def _own_build_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import sys

    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    # torch runs `ninja` by name; it lies beside the interpreter.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.slow
def test_the_cpp_example_gives_the_references_results() -> None:
    compare("cpp", "cpu")


@pytest.mark.gpu
def test_the_cuda_example_gives_the_references_results() -> None:
    compare("cuda", "cuda")
